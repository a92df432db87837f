package storetest_test

import (
	"context"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/memstore"
)

// wrongLooks is a store with a fault in its looks.
type wrongLooks struct {
	*memstore.Store
	look func(ctx context.Context, s *memstore.Store, marks []contract.Mark) ([]contract.Verdict, error)
}

func (s wrongLooks) LookUpMarkers(ctx context.Context, marks []contract.Mark) ([]contract.Verdict, error) {
	return s.look(ctx, s.Store, marks)
}

var lookFaults = []fault{
	{"a look marks", "case_16_a_look_says", func(s *memstore.Store) contract.TxStore[*memstore.Tx] {
		return wrongLooks{s, func(ctx context.Context, s *memstore.Store, marks []contract.Mark) ([]contract.Verdict, error) {
			b, v, err := s.Begin(ctx, contract.TxOptions{}, marks)
			if err == nil {
				b.Commit(ctx, contract.Ending{})
			}
			return v, err
		}}
	}},
	{"a look takes another content for a copy", "case_16_a_look_says", func(s *memstore.Store) contract.TxStore[*memstore.Tx] {
		return wrongLooks{s, func(ctx context.Context, s *memstore.Store, marks []contract.Mark) ([]contract.Verdict, error) {
			v, err := s.LookUpMarkers(ctx, marks)
			for i := range v {
				if v[i].Kind == contract.Conflict {
					v[i] = contract.Verdict{Kind: contract.Seen, Was: contract.Applied}
				}
			}
			return v, err
		}}
	}},
	{"a look waits for a copy in flight", "case_5_a_look_waits", func(s *memstore.Store) contract.TxStore[*memstore.Tx] {
		return wrongLooks{s, func(ctx context.Context, s *memstore.Store, marks []contract.Mark) ([]contract.Verdict, error) {
			b, v, err := s.Begin(ctx, contract.TxOptions{MarkLock: 1}, marks)
			if err == nil {
				b.Rollback(ctx)
			}
			return v, err
		}}
	}},
}
