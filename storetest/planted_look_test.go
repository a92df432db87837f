package storetest_test

import (
	"context"

	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// wrongLooks is a store with a fault in its looks.
type wrongLooks struct {
	*memstore.Store
	look func(ctx context.Context, s *memstore.Store, marks []store.Mark) ([]store.Verdict, error)
}

func (s wrongLooks) LookUpMarkers(ctx context.Context, marks []store.Mark) ([]store.Verdict, error) {
	return s.look(ctx, s.Store, marks)
}

var lookFaults = []fault{
	{"a look marks", "case_16_a_look_says", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongLooks{s, func(ctx context.Context, s *memstore.Store, marks []store.Mark) ([]store.Verdict, error) {
			b, v, err := s.Begin(ctx, store.TxOptions{}, marks)
			if err == nil {
				b.Commit(ctx, store.Ending{})
			}
			return v, err
		}}
	}},
	{"a look takes another content for a copy", "case_16_a_look_says", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongLooks{s, func(ctx context.Context, s *memstore.Store, marks []store.Mark) ([]store.Verdict, error) {
			v, err := s.LookUpMarkers(ctx, marks)
			for i := range v {
				if v[i].Kind == store.Conflict {
					v[i] = store.Verdict{Kind: store.Seen, Was: store.Applied}
				}
			}
			return v, err
		}}
	}},
	{"a look waits for a copy in flight", "case_5_a_look_waits", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongLooks{s, func(ctx context.Context, s *memstore.Store, marks []store.Mark) ([]store.Verdict, error) {
			b, v, err := s.Begin(ctx, store.TxOptions{MarkLock: 1}, marks)
			if err == nil {
				b.Rollback(ctx)
			}
			return v, err
		}}
	}},
}
