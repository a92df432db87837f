package consumer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// checkedStore is a downStore with a schema check.
type checkedStore struct {
	*downStore
	looks   atomic.Int64
	damaged atomic.Bool
}

func (s *checkedStore) Check(context.Context) error {
	s.looks.Add(1)
	if s.damaged.Load() {
		return errors.Join(errors.New("the markers are unlogged"), semel.ErrSchema)
	}
	return nil
}

// failures are failures that a store can have during a run, by the operation that fails.
var failures = map[string]func(s *checkedStore){
	"begin": func(s *checkedStore) {
		failed := false
		s.onBegin = func(context.Context, []store.Mark) error {
			if first := !failed && s.damaged.Load(); first {
				failed = true
				return &downError{}
			}
			return nil
		}
	},
	"commit": func(s *checkedStore) {
		failed := false
		s.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
			if first := !failed && s.damaged.Load(); first {
				failed = true
				commit(ctx)
				return store.Result{Outcome: store.CommitUnknown, Class: store.ClassDown, Culprit: store.NoCulprit, Err: &downError{}}
			}
			return commit(ctx)
		}
	},
}

func TestTablesThatAreChangedDuringARun(t *testing.T) {
	bubble(t, "trap_T112_after_a_failure_of_the_store_nothing_runs_before_its_tables_were_looked_at", func(t *testing.T) {
		for where, fail := range failures {
			store := &checkedStore{downStore: &downStore{watch(memstore.New())}}
			fail(store)
			src := watchSource(numbered("m", 20)...)
			src.endless = true
			src.onFetch = func(context.Context, source.Bound) error {
				store.damaged.Store(true)
				return nil
			}
			consumer := mustNew(t, store, add, config(src))
			run := start(t, consumer)
			pass(time.Minute)
			synctest.Wait()
			if ready, why := consumer.Ready(); ready || !strings.Contains(why, "unlogged") {
				t.Errorf("%s: ready %v (%s), want what is wrong with the tables", where, ready, why)
			}
			if counts := consumer.Counts(); counts.Applied != 0 || len(src.settled) != 0 {
				t.Errorf("%s: work went on: %+v", where, counts)
			}
			store.damaged.Store(false)
			pass(time.Minute)
			if counts := consumer.Counts(); counts.Applied != 20 || counts.Parked+counts.Retried != 0 {
				t.Errorf("%s: afterwards %+v", where, counts)
			}
			looks := store.looks.Load()
			pass(time.Minute)
			if n := store.looks.Load(); n != looks {
				t.Errorf("%s: the schema of a working store was checked %d more times", where, n-looks)
			}
			run.stop()
			if err := run.wait(); err != nil {
				t.Error(err)
			}
		}
	})
	bubble(t, "trap_T112_while_the_store_works_its_tables_are_looked_at_once_an_hour", func(t *testing.T) {
		store := &checkedStore{downStore: &downStore{watch(memstore.New())}}
		consumer := mustNew(t, store, add, config(nil))
		messages := numbered("m", 181)
		for _, m := range messages {
			if _, err := consumer.Process(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			pass(time.Minute)
		}
		if n := store.looks.Load(); n != 4 {
			t.Errorf("in three hours the tables were looked at %d times, want at the start and three times", n)
		}
		if err := consumer.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// askedStore is a downStore that counts the calls of Scope.
type askedStore struct {
	*downStore
	asked atomic.Int64
}

func (s *askedStore) Scope(ctx context.Context, consumer, source string, generation int64) (int64, error) {
	s.asked.Add(1)
	return s.downStore.Scope(ctx, consumer, source, generation)
}

func (s *askedStore) Scopes(ctx context.Context, consumer string, sources []string, generation int64) (numbers []int64, err error) {
	for _, source := range sources {
		n, err := s.Scope(ctx, consumer, source, generation)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

func TestScopesAreForgottenAfterAnOutage(t *testing.T) {
	bubble(t, "law_1_its_scopes_are_numbered_again_since_a_standby_may_not_have_the_last", func(t *testing.T) {
		st := &askedStore{downStore: &downStore{watch(memstore.New())}}
		var begun int
		st.onBegin = func(context.Context, []store.Mark) error {
			if begun++; begun == 3 {
				return &downError{}
			}
			return nil
		}
		consumer := mustNew(t, st, add, config(nil))
		var asked []int64
		for _, m := range numbered("m", 4) {
			before := st.asked.Load()
			if _, err := consumer.Process(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			asked = append(asked, st.asked.Load()-before)
			pass(time.Minute)
		}
		if !slices.Equal(asked, []int64{1, 0, 0, 1}) {
			t.Errorf("Scope was called %v times for the four messages, want one more call after the outage at the third", asked)
		}
		if err := consumer.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
