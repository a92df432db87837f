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

// rowless is a store without an inbox. Its field commit is the function that commits a batch with rows.
type rowless struct {
	store.TxStore[*memstore.Tx]
	commit func(context.Context, batch, store.Ending) store.Result
}

// Limits implements store.TxStore. The limits are empty because steps need an inbox.
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
		{"rows are refused with ClassRetry", false, func(ctx context.Context, b batch, _ store.Ending) store.Result {
			b.Rollback(ctx)
			return refusedAs(store.ClassRetry)
		}},
		{"rows are refused after the commit", false, func(ctx context.Context, b batch, e store.Ending) store.Result {
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
					t.Errorf("a correct store fails %+v", failures)
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
			t.Errorf("the suite reports %+v, want %q", failures, want)
		}
	}
}

// wrongLooks is a store with a fault in LookUpMarkers.
type wrongLooks struct {
	*memstore.Store
	look func(ctx context.Context, s *memstore.Store, marks []store.Mark) ([]store.Verdict, error)
}

func (s wrongLooks) LookUpMarkers(ctx context.Context, marks []store.Mark) ([]store.Verdict, error) {
	return s.look(ctx, s.Store, marks)
}

var lookFaults = []fault{
	{"a look marks", "case_16_a_lookup_returns_committed_marks", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongLooks{s, func(ctx context.Context, s *memstore.Store, marks []store.Mark) ([]store.Verdict, error) {
			b, v, err := s.Begin(ctx, store.TxOptions{}, marks)
			if err == nil {
				b.Commit(ctx, store.Ending{})
			}
			return v, err
		}}
	}},
	{"a lookup treats other content as a copy", "case_16_a_lookup_returns_committed_marks", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
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
	{"a lookup waits for a copy in flight", "case_5_a_lookup_waits_for_no_batch", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		return wrongLooks{s, func(ctx context.Context, s *memstore.Store, marks []store.Mark) ([]store.Verdict, error) {
			b, v, err := s.Begin(ctx, store.TxOptions{MarkLock: 1}, marks)
			if err == nil {
				b.Rollback(ctx)
			}
			return v, err
		}}
	}},
}

// sortsScopes is a store that, when several scopes are requested with one call, returns their numbers sorted by source
// and not in the requested order.
type sortsScopes struct{ *memstore.Store }

func (s sortsScopes) Scopes(ctx context.Context, consumer string, sources []string, generation int64) (numbers []int64, err error) {
	for _, source := range slices.Sorted(slices.Values(sources)) {
		n, err := s.Scope(ctx, consumer, source, generation)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// restartsPass is a store whose removal of old markers starts again at the first marker when only bodies are left to be
// removed.
type restartsPass struct{ *memstore.Store }

func (s restartsPass) Reap(ctx context.Context, r store.Reaping) (store.Reaped, error) {
	r.After.Done = false
	return s.Store.Reap(ctx, r)
}

// closesAll is a store that closes the marker of an identity when the row of the identity's first content is discarded,
// even if the marker belongs to another row.
type closesAll struct {
	faultyStore
	closed map[string]bool
}

func (s *closesAll) Discard(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	for _, of := range rows {
		if r := rowNow(s.Store, of.Number); !r.Conflict {
			s.closed[r.Key.ID] = true
		}
	}
	return s.Store.Discard(ctx, a, rows...)
}

// judge returns the store's answer for a mark, changed as if the marker of a closed identity were closed.
func (s *closesAll) judge(m store.Mark, v store.Verdict) store.Verdict {
	switch {
	case !s.closed[string(m.ID)]:
		return v
	case m.Claim.Token != 0:
		return store.Verdict{Kind: store.ClaimLost}
	}
	return store.Verdict{Kind: store.Seen, Was: store.Discarded}
}

var twinFaults = []fault{
	{"a discard closes the marker of another row", "law_16_a_discard_of_the_first_row", func(s *memstore.Store) store.TxStore[*memstore.Tx] {
		c := &closesAll{faultyStore: faultyStore{Store: s}, closed: map[string]bool{}}
		c.verdict = c.judge
		return c
	}},
}
