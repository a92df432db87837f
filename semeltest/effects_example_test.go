package semeltest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/semeltest"
)

// booking is an effect that the endpoint answers with.
type booking struct {
	Account string
	Amount  int64
}

// transfer is an endpoint that changes nothing. It answers with the bookings of a transfer.
func transfer(w http.ResponseWriter, r *http.Request) {
	var t struct {
		From, To string
		Amount   int64
	}
	if err := json.NewDecoder(r.Body).Decode(&t); err != nil {
		http.Error(w, "no transfer", http.StatusUnprocessableEntity)
		return
	}
	_ = json.NewEncoder(w).Encode([]booking{{t.From, -t.Amount}, {t.To, t.Amount}})
}

// ask is the function that the example passes to consumer.NewCalling as its parameter call.
func ask(ctx context.Context, url string, m *semel.Message) (all []booking, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(m.Body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Idempotency-Key", m.IdempotencyKey("transfer"))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the endpoint answered %s", answer.Status)
	}
	err = json.NewDecoder(answer.Body).Decode(&all)
	return all, err
}

// apply is the function that the example passes to consumer.NewCalling as its parameter apply.
func apply(_ context.Context, tx *memstore.Tx, all []booking, _ *semel.Message) error {
	for _, b := range all {
		if err := tx.Add(b.Account, b.Amount); err != nil {
			return err
		}
	}
	return nil
}

func TestTransfers(t *testing.T) {
	endpoint := httptest.NewServer(http.HandlerFunc(transfer))
	t.Cleanup(endpoint.Close)
	semeltest.Run(t, func(*testing.T) semeltest.Handler[*memstore.Tx] {
		store := memstore.New()
		return semeltest.Handler[*memstore.Tx]{
			Store: store,
			Handle: func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				bookings, err := ask(ctx, endpoint.URL, m)
				if err != nil {
					return err
				}
				return apply(ctx, tx, bookings, m)
			},
			Messages: []*semel.Message{
				semeltest.Message("transfer-1", `{"from":"a","to":"b","amount":30}`), semeltest.Message("transfer-2", `{"from":"b","to":"a","amount":12}`),
			},
			Effect: func(context.Context) (string, error) {
				return fmt.Sprintf("a %s, b %s", store.Get("a"), store.Get("b")), nil
			},
		}
	})
}
