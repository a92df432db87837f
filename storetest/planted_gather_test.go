package storetest_test

import (
	"context"

	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// wrongGathers is a store with a fault in transactions that claims share.
type wrongGathers struct {
	*memstore.Store
	commit func(ctx context.Context, s *memstore.Store, all []store.QueuedBatch[*memstore.Tx]) store.Result
}

func (s wrongGathers) CommitCombined(ctx context.Context, _ store.TxOptions, all []store.QueuedBatch[*memstore.Tx]) store.Result {
	return s.commit(ctx, s.Store, all)
}

var gatherFaults = []fault{
	{"what shares a transaction commits one after the other", "law_5_a_claim_that_is_lost", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongGathers{s, func(ctx context.Context, s *memstore.Store, all []store.QueuedBatch[*memstore.Tx]) (r store.Result) {
			for i := range all {
				if r = s.CommitCombined(ctx, store.TxOptions{}, all[i:i+1]); r.Outcome != store.Committed {
					return r
				}
			}
			return r
		}}
	}},
	{"only the first of a shared transaction is written", "K10_law_1_claims_that_share", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongGathers{s, func(ctx context.Context, s *memstore.Store, all []store.QueuedBatch[*memstore.Tx]) store.Result {
			return s.CommitCombined(ctx, store.TxOptions{}, all[:1])
		}}
	}},
	{"a shared transaction does not ask whether claims stand", "law_5_a_claim_that_ended", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongGathers{s, func(ctx context.Context, s *memstore.Store, all []store.QueuedBatch[*memstore.Tx]) store.Result {
			r := s.CommitCombined(ctx, store.TxOptions{}, all)
			if r.Class != store.ClassClaimLost {
				return r
			}
			b, _, err := s.Begin(ctx, store.TxOptions{}, nil)
			if err != nil {
				return r
			}
			_ = b.Tx(store.All).Add("a", 1)
			return b.Commit(ctx, store.Ending{})
		}}
	}},
}
