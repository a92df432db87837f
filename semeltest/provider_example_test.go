package semeltest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/semeltest"
)

// charge asks the provider to make a charge for a payment, and writes the response to the table.
func charge(ctx context.Context, url string, tx *memstore.Tx, m *semel.Message) error {
	if r, is := m.Replay(); is && !r.Effects {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(m.Body)))
	if err != nil {
		return err
	}
	request.Header.Set("Idempotency-Key", m.IdempotencyKey("charge"))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the provider answered %s", answer.Status)
	}
	return tx.Add("charged", 1)
}

func TestCharging(t *testing.T) {
	semeltest.Run(t, func(t *testing.T) semeltest.Handler[*memstore.Tx] {
		store, provider := memstore.New(), semeltest.NewProvider(t)
		return semeltest.Handler[*memstore.Tx]{
			Store: store,
			Handle: func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				return charge(ctx, provider.URL, tx, m)
			},
			Messages: []*semel.Message{semeltest.Message("payment-1", `{"amount":30}`), semeltest.Message("payment-2", `{"amount":12}`)},
			Effect:   func(context.Context) (string, error) { return string(store.Get("charged")), nil },
			Config:   consumer.Config{Replay: &semel.Replay{ID: 1}},
			Provider: provider,
		}
	})
}
