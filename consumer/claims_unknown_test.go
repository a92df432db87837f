package consumer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

func TestACommitOfClaimsWithUnknownOutcome(t *testing.T) {
	for name, happened := range map[string]bool{"case_3_it_happened": true, "case_3_it_did_not": false} {
		bubble(t, name, func(t *testing.T) {
			inner := memstore.New()
			fillInbox(t, inner, 20)
			st, failed := watch(inner), atomic.Bool{}
			st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
				if failed.Swap(true) {
					return commit(ctx)
				}
				if happened {
					commit(ctx)
				}
				return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: errTest}
			}
			c := withoutSource(config(nil))
			c.Workers, c.IdleExit = 1, time.Minute
			counts := runs(t, st, add, c)
			if counts.Inbox.Applied != 20 || counts.Inbox.Duplicates+counts.Inbox.Lost != 0 {
				t.Errorf("%+v", counts)
			}
			for _, r := range rows(t, inner) {
				if r.State != store.StateCompleted || r.Attempts != 1 || effect(t, inner, r.Key.ID) != "1" {
					t.Errorf("%+v, effect %q", r, effect(t, inner, r.Key.ID))
				}
			}
		})
	}
}

func TestACommitOfDuplicatesWithUnknownOutcome(t *testing.T) {
	bubble(t, "law_11_it_is_asked_once_what_became_of_the_claims", func(t *testing.T) {
		inner := memstore.New()
		fillInbox(t, inner, 20)
		st, commits := watch(inner), 0
		var run *runningConsumer
		st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
			if commits++; commits == 1000 {
				run.stop()
			}
			if r := commit(ctx); commits%2 == 0 || r.Outcome != store.Committed {
				return r
			}
			return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: errTest}
		}
		c := withoutSource(config(nil))
		c.Workers, c.IdleExit = 1, time.Minute
		running := mustNew(t, st, func(context.Context, *memstore.Tx, *semel.Message) error { return semel.Duplicate(errTest) }, c)
		run = start(t, running)
		if err := run.wait(); err != nil {
			t.Error(err)
		}
		if n := running.Counts().Inbox; n.Duplicates != 20 || n.Lost != 0 || commits >= 200 {
			t.Errorf("%+v after %d commits", n, commits)
		}
		for _, r := range rows(t, inner) {
			if r.State != store.StateCompleted || effect(t, inner, r.Key.ID) != "" {
				t.Errorf("%+v, effect %q", r, effect(t, inner, r.Key.ID))
			}
		}
	})
}

// losing is a store that loses the responses to a number of Reclaim calls. The field happens says whether the store
// carries out the Reclaim calls with lost responses.
type losing struct {
	*watchedStore
	lost    int
	happens bool
}

func (s *losing) Reclaim(ctx context.Context, numbers []int64, from []store.Token, to store.Token) ([]store.Reclaimed, error) {
	if s.lost--; s.lost < 0 {
		return s.watchedStore.Reclaim(ctx, numbers, from, to)
	}
	if s.happens {
		if _, err := s.watchedStore.Reclaim(ctx, numbers, from, to); err != nil {
			return nil, err
		}
	}
	return nil, errTest
}

func TestAReclaimWithALostResponse(t *testing.T) {
	for name, happens := range map[string]bool{"case_3_it_happened": true, "case_3_it_did_not_happen": false} {
		bubble(t, name, func(t *testing.T) {
			inner := memstore.New()
			fillInbox(t, inner, 1)
			st, commits := &losing{watch(inner), 2, happens}, 0
			st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
				if commits++; commits > 1 {
					return commit(ctx)
				}
				return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: errTest}
			}
			c := withoutSource(config(nil))
			c.IdleExit = 10 * time.Second // less than a lease
			counts := runs(t, st, add, c)
			if counts.Inbox.Applied != 1 || counts.Inbox.Claimed != 1 || counts.Inbox.Lost != 0 || effect(t, inner, "m0") != "1" {
				t.Errorf("%+v, effect %q", counts, effect(t, inner, "m0"))
			}
		})
	}
}

// answersLate is a store whose response to a claim arrives after the engine has stopped waiting for it.
type answersLate struct {
	*memstore.Store
	claimed func()
}

func (s *answersLate) Claim(ctx context.Context, o store.ClaimOptions) ([]store.Claimed, error) {
	if _, err := s.Store.Claim(ctx, o); err != nil {
		return nil, err
	}
	s.claimed()
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAStopWhileAClaimsAnswerIsUnderWay(t *testing.T) {
	bubble(t, "case_10_what_the_store_has_given_is_given_back", func(t *testing.T) {
		inner := memstore.New()
		fillInbox(t, inner, 5)
		ctx, stop := context.WithCancel(t.Context())
		c := withoutSource(config(nil))
		c.Drain = time.Second
		began := time.Now()
		if err := mustNew(t, &answersLate{inner, stop}, add, c).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > c.Drain+5*time.Second {
			t.Errorf("the stop took %v", took)
		}
		for _, r := range rows(t, inner) {
			if r.State != store.StateReceived {
				t.Errorf("row %d is %s until its lease ends at %v", r.Number, r.State, r.LockedUntil)
			}
		}
	})
}
