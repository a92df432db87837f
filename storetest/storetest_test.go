package storetest_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

var abilities = storetest.Abilities{Inbox: true, Replays: true, Leases: true, Calls: true, Gather: true, Steps: true, Intents: true, Emission: true, Results: true, Audit: true, Erasure: true, Streams: true, Lines: true, Retention: true, MarkIn: true, Positions: true, Controls: true, Derivations: true, Offsets: true, Edits: true, Generations: true}

// memory returns a store in memory, and a function that makes the stored times look as if the clock had been ahead: the
// function sets the store's clock back.
func memory() (s *memstore.Store, ahead func(testing.TB, time.Duration)) {
	var back atomic.Int64
	s = memstore.New(memstore.Clock(func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }))
	return s, func(_ testing.TB, by time.Duration) { back.Add(int64(by)) }
}

// opened returns an instance of the store that the function made creates from a memstore.
func opened(made func(*memstore.Store) store.TxStore[*memstore.Tx]) storetest.Instance[*memstore.Tx] {
	s, ahead := memory()
	i := on(made(s), s)
	i.Ahead = ahead
	return i
}

// The function on returns an instance of the store st. The effects are stored in a memstore.
func on(st store.TxStore[*memstore.Tx], effects *memstore.Store) storetest.Instance[*memstore.Tx] {
	return storetest.Instance[*memstore.Tx]{
		Store:  st,
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
		Open: func(testing.TB) storetest.Instance[*memstore.Tx] {
			return opened(func(s *memstore.Store) store.TxStore[*memstore.Tx] { return s })
		},
		Can: abilities,
	})
}
