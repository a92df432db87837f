package storetest_test

import (
	"context"
	"maps"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// keepsResults is a store that keeps results in another way.
type keepsResults struct {
	*memstore.Store
	keep func(s *memstore.Store, tx *memstore.Tx, of store.ResultOf, result []byte) error
}

func (s keepsResults) KeepResult(_ context.Context, tx *memstore.Tx, of store.ResultOf, result []byte) error {
	return s.keep(s.Store, tx, of, result)
}

// remembersResults is a store that forgets no result, or never has one that is empty.
type remembersResults struct {
	*memstore.Store
	told   map[string][]byte
	forget bool
}

func (s remembersResults) Results(ctx context.Context, of []store.ResultOf) ([][]byte, error) {
	all, err := s.Store.Results(ctx, of)
	for i := range all {
		switch {
		case s.forget && len(all[i]) == 0:
			all[i] = nil
		case s.forget:
		case all[i] == nil:
			all[i] = s.told[string(of[i].ID)]
		default:
			maps.Copy(s.told, map[string][]byte{string(of[i].ID): all[i]})
		}
	}
	return all, err
}

func keepingResults(keep func(s *memstore.Store, tx *memstore.Tx, of store.ResultOf, result []byte) error) func(*memstore.Store) store.TxStore[*memstore.Tx] {
	return func(s *memstore.Store) store.TxStore[*memstore.Tx] { return keepsResults{s, keep} }
}

// oneAtEnd keeps but the last result by its commit.
type oneAtEnd struct {
	batch
	of     store.ResultOf
	result []byte
}

func (b *oneAtEnd) WriteResultAtCommit(of store.ResultOf, result []byte) {
	b.of, b.result = of, result
}

func (b *oneAtEnd) Commit(ctx context.Context, e store.Ending) store.Result {
	if b.of.ID != nil {
		b.batch.(admin.CommitResultWriter).WriteResultAtCommit(b.of, b.result)
	}
	return b.batch.Commit(ctx, e)
}

var resultFaults = []fault{
	{"the commit keeps one result", "C12_a_result_may_be_kept_by_the_commit", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return &broken{Store: s, batch: func(_ *broken, b batch, _ []store.Mark) batch { return &oneAtEnd{batch: b} }}
	}},
	{"a result is written in a transaction of its own", "C12_a_result_is_there_exactly", keepingResults(func(s *memstore.Store, _ *memstore.Tx, of store.ResultOf, result []byte) error {
		b, _, err := s.Begin(context.Background(), store.TxOptions{}, nil)
		if err != nil {
			return err
		}
		defer b.Commit(context.Background(), store.Ending{})
		return s.KeepResult(context.Background(), b.Tx(store.All), of, result)
	})},
	{"results are cut", "C12_a_result_is_any_bytes", keepingResults(func(s *memstore.Store, tx *memstore.Tx, of store.ResultOf, result []byte) error {
		return s.KeepResult(context.Background(), tx, of, result[:min(len(result), 1000)])
	})},
	{"results are not of a scope", "C12_a_result_is_any_bytes", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return remembersResults{s, map[string][]byte{}, false}
	}},
	{"an empty result is none", "C12_a_result_is_any_bytes", func(s *memstore.Store) store.TxStore[*memstore.Tx] { return remembersResults{s, nil, true} }},
	{"a result outlives its marker", "H3_a_result_goes_with_its_marker", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return remembersResults{s, map[string][]byte{}, false}
	}},
	{"a result under a lost claim stays", "law_5_a_claim_that_was_lost_keeps_no_result", keepingResults(func(s *memstore.Store, _ *memstore.Tx, of store.ResultOf, result []byte) error {
		b, _, err := s.Begin(context.Background(), store.TxOptions{}, nil)
		if err != nil {
			return err
		}
		defer b.Commit(context.Background(), store.Ending{})
		return s.KeepResult(context.Background(), b.Tx(store.All), of, result)
	})},
}
