package semeltest_test

import (
	"context"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/semeltest"
)

// bill is the handler under test.
func bill(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
	p, err := semel.JSON[struct{ Amount int64 }](m)
	if err != nil {
		return err
	}
	return tx.Add("balance", p.Amount)
}

func TestBilling(t *testing.T) {
	semeltest.Run(t, func(*testing.T) semeltest.Handler[*memstore.Tx] {
		store := memstore.New()
		return semeltest.Handler[*memstore.Tx]{
			Store:    store,
			Handle:   bill,
			Messages: []*semel.Message{semeltest.Message("payment-1", `{"amount":30}`), semeltest.Message("payment-2", `{"amount":12}`)},
			Effect:   func(context.Context) (string, error) { return string(store.Get("balance")), nil },
		}
	})
}

// Your test function has this body; t is its parameter.
func ExampleRun() {
	var t *testing.T
	semeltest.Run(t, func(*testing.T) semeltest.Handler[*memstore.Tx] {
		store := memstore.New()
		return semeltest.Handler[*memstore.Tx]{
			Store:    store,
			Handle:   bill, // the handler that the program passes to consumer.New
			Messages: []*semel.Message{semeltest.Message("payment-1", `{"amount":30}`), semeltest.Message("payment-2", `{"amount":12}`)},
			Effect:   func(context.Context) (string, error) { return string(store.Get("balance")), nil },
		}
	})
}
