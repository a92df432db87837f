package storetest_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/storetest"
)

var abilities = storetest.Abilities{Inbox: true, Look: true, Replays: true, Leases: true, Calls: true, Gather: true, Steps: true, Intents: true, Emission: true, Results: true, Audit: true, Erasure: true, Streams: true, Lines: true, Retention: true, MarkIn: true, Positions: true, Controls: true, Derivations: true, Offsets: true, Edits: true, Generations: true}

// on is an instance of a store whose effects are those of a memstore.
func on(store contract.TxStore[*memstore.Tx], effects *memstore.Store) storetest.Instance[*memstore.Tx] {
	return storetest.Instance[*memstore.Tx]{
		Store:  store,
		Effect: func(_ context.Context, tx *memstore.Tx, name string) error { return tx.Add(name, 1) },
		Count: func(t testing.TB, name string) int {
			text := effects.Get(name)
			if text == nil {
				return 0
			}
			n, err := strconv.Atoi(string(text))
			if err != nil {
				t.Error(err)
			}
			return n
		},
		Spoil: func(_ context.Context, tx *memstore.Tx) error {
			if err := tx.Set("word", []byte("x")); err != nil {
				return err
			}
			return tx.Add("word", 1)
		},
	}
}

func TestMemstoreKeepsTheLaws(t *testing.T) {
	storetest.Run(t, storetest.Harness[*memstore.Tx]{
		Open: func(testing.TB) storetest.Instance[*memstore.Tx] { s := memstore.New(); return on(s, s) },
		Can:  abilities,
	})
}
