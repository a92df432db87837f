package storetest_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

// rowless is a store without an inbox. commit ends a batch that has rows.
type rowless struct {
	store.TxStore[*memstore.Tx]
	commit func(context.Context, batch, store.Ending) store.Result
}

// Limits implements store.TxStore: steps need an inbox.
func (rowless) Limits() store.Limits { return store.Limits{} }

func (s rowless) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (batch, []store.Verdict, error) {
	b, v, err := s.TxStore.Begin(ctx, o, marks)
	if err != nil {
		return nil, nil, err
	}
	return rowlessBatch{b, s.commit}, v, nil
}

type rowlessBatch struct {
	batch
	commit func(context.Context, batch, store.Ending) store.Result
}

func (b rowlessBatch) Commit(ctx context.Context, e store.Ending) store.Result {
	if len(e.Rows) > 0 {
		return b.commit(ctx, b.batch, e)
	}
	return b.batch.Commit(ctx, e)
}

func refusedAs(c store.Class) store.Result {
	return store.Result{Outcome: store.NotCommitted, Class: c, Culprit: store.NoCulprit, Err: semel.ErrUnsupported}
}

// withoutRows commits a batch without its rows.
func withoutRows(ctx context.Context, b batch, e store.Ending) store.Result {
	e.Rows = nil
	return b.Commit(ctx, e)
}

func TestTheSuiteFindsStoresThatLoseRows(t *testing.T) {
	for _, f := range []struct {
		name   string
		right  bool
		commit func(context.Context, batch, store.Ending) store.Result
	}{
		{"rows are refused", true, func(ctx context.Context, b batch, _ store.Ending) store.Result {
			b.Rollback(ctx)
			return refusedAs(store.ClassPermanent)
		}},
		{"rows are ignored", false, withoutRows},
		{"rows are refused as if a retry could help", false, func(ctx context.Context, b batch, _ store.Ending) store.Result {
			b.Rollback(ctx)
			return refusedAs(store.ClassRetry)
		}},
		{"rows are refused behind the commit", false, func(ctx context.Context, b batch, e store.Ending) store.Result {
			withoutRows(ctx, b, e)
			return refusedAs(store.ClassPermanent)
		}},
	} {
		t.Run("case_7_"+f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failures := storetest.Check(t, storetest.Harness[*memstore.Tx]{Open: func(testing.TB) storetest.Instance[*memstore.Tx] {
					s, _ := memory()
					return on(rowless{s, f.commit}, s)
				}})
				if f.right && len(failures) != 0 {
					t.Errorf("a right store fails %+v", failures)
				}
				if !f.right && (len(failures) != 1 || !strings.HasPrefix(failures[0].Name, "case_7_")) {
					t.Errorf("it fails %+v", failures)
				}
			})
		})
	}
}

func TestAWrongAbilityIsNamed(t *testing.T) {
	named := func(f storetest.Failure) bool { return strings.HasPrefix(f.Name, "a_store_has_the_abilities") }
	for want, harness := range map[string]storetest.Harness[*memstore.Tx]{
		"Can.Inbox is declared, and the store lacks store.Inbox": {
			Open: func(testing.TB) storetest.Instance[*memstore.Tx] {
				return opened(func(s *memstore.Store) store.TxStore[*memstore.Tx] { return noInbox{s} })
			},
			Can: storetest.Abilities{Inbox: true, Steps: true},
		},
		"Can.Steps is not declared, and the store has store.Limits.StepOutput above 0": {
			Open: func(testing.TB) storetest.Instance[*memstore.Tx] {
				return opened(func(s *memstore.Store) store.TxStore[*memstore.Tx] { return noInbox{s} })
			},
		},
	} {
		failures := storetest.Check(t, harness)
		if i := slices.IndexFunc(failures, named); i < 0 || strings.TrimSpace(failures[i].Text) != want {
			t.Errorf("it says %+v, want %q", failures, want)
		}
	}
}
