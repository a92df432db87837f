package storetest_test

import (
	"context"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/memstore"
)

// wrongGathers is a store with a fault in transactions that claims share.
type wrongGathers struct {
	*memstore.Store
	commit func(ctx context.Context, s *memstore.Store, all []contract.QueuedBatch[*memstore.Tx]) contract.Result
}

func (s wrongGathers) CommitCombined(ctx context.Context, _ contract.TxOptions, all []contract.QueuedBatch[*memstore.Tx]) contract.Result {
	return s.commit(ctx, s.Store, all)
}

var gatherFaults = []fault{
	{"what shares a transaction commits one after the other", "law_5_a_claim_that_is_lost", func(s *memstore.Store) contract.TxStore[*memstore.Tx] {
		return wrongGathers{s, func(ctx context.Context, s *memstore.Store, all []contract.QueuedBatch[*memstore.Tx]) (r contract.Result) {
			for i := range all {
				if r = s.CommitCombined(ctx, contract.TxOptions{}, all[i:i+1]); r.Outcome != contract.Committed {
					return r
				}
			}
			return r
		}}
	}},
	{"only the first of a shared transaction is written", "K10_law_1_claims_that_share", func(s *memstore.Store) contract.TxStore[*memstore.Tx] {
		return wrongGathers{s, func(ctx context.Context, s *memstore.Store, all []contract.QueuedBatch[*memstore.Tx]) contract.Result {
			return s.CommitCombined(ctx, contract.TxOptions{}, all[:1])
		}}
	}},
	{"a shared transaction does not ask whether claims stand", "law_5_a_claim_that_ended", func(s *memstore.Store) contract.TxStore[*memstore.Tx] {
		return wrongGathers{s, func(ctx context.Context, s *memstore.Store, all []contract.QueuedBatch[*memstore.Tx]) contract.Result {
			r := s.CommitCombined(ctx, contract.TxOptions{}, all)
			if r.Class != contract.ClassClaimLost {
				return r
			}
			b, _, err := s.Begin(ctx, contract.TxOptions{}, nil)
			if err != nil {
				return r
			}
			_ = b.Tx(contract.All).Add("a", 1)
			return b.Commit(ctx, contract.Ending{})
		}}
	}},
}
