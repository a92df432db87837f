package consumer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// judging is a store whose batches classify the errors of handlers but do not report that their transaction
// is aborted.
type judging struct {
	*memstore.Store
	judge  func(ctx context.Context, err error) store.Class
	broken bool // the transaction is aborted
}

type judgingBatch struct {
	store.Batch[*memstore.Tx]
	store *judging
}

func (s *judging) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	s.broken = false
	b, v, err := s.Store.Begin(ctx, o, marks)
	return &judgingBatch{b, s}, v, err
}

func (*judgingBatch) TxAborted() bool   { return false }
func (*judgingBatch) AbortCause() error { return nil }

func (b *judgingBatch) ClassifyHandler(ctx context.Context, err error) store.Class {
	return b.store.judge(ctx, err)
}

func (b *judgingBatch) Commit(ctx context.Context, e store.Ending) store.Result {
	if b.store.broken {
		b.Rollback(ctx)
		return store.Result{Outcome: store.NotCommitted, Class: store.ClassAborted, Culprit: store.NoCulprit, Err: errTest}
	}
	return b.Batch.Commit(ctx, e)
}

func TestClassesOfHandlersErrors(t *testing.T) {
	bubble(t, "case_10_the_store_is_asked_under_a_context_that_does_not_end_with_the_run", func(t *testing.T) {
		asked, st := 0, &judging{Store: memstore.New()}
		st.judge = func(ctx context.Context, _ error) store.Class {
			asked++
			select {
			case <-time.After(4 * time.Second): // the run ends before this time has passed
			case <-ctx.Done():
				t.Errorf("its context ended: %v", context.Cause(ctx))
			}
			return store.ClassRetry
		}
		source := newListSource(numbered("m", 1)...)
		source.endless = true
		c := config(source)
		c.Drain = time.Second
		run := start(t, mustNew(t, st, func(ctx context.Context, _ *memstore.Tx, _ *semel.Message) error {
			pass(2 * time.Second)
			if ctx.Err() != nil {
				t.Errorf("the handler's context ended within the drain: %v", context.Cause(ctx))
			}
			return errTest
		}, c))
		pass(1500 * time.Millisecond)
		run.stop()
		if err := run.wait(); err != nil || asked != 1 {
			t.Errorf("asked %d times: %v", asked, err)
		}
	})
	bubble(t, "law_7_who_meets_an_aborted_transaction_is_not_charged_for_it_but_who_aborted_it", func(t *testing.T) {
		st := &judging{Store: memstore.New()}
		st.judge = func(_ context.Context, err error) store.Class {
			var c ofClass
			if errors.As(err, &c) {
				return store.Class(c)
			}
			return store.ClassRetry
		}
		c := config(newListSource(numbered("m", 20)...))
		c.Workers, c.Retry.MaxAttempts = 1, 3
		highest, met := map[string]int{}, map[string]bool{}
		counts := runs(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			id := m.Identity.ID
			highest[id] = max(highest[id], m.Attempt)
			switch {
			case st.broken:
				met[id] = true
				return ofClass(store.ClassAborted)
			case id == "m11":
				st.broken = true
				return nil
			}
			return add(ctx, tx, m)
		}, c)
		r := row(t, st.Store, "m11")
		if counts.Applied != 19 || counts.Parked != 1 || counts.Retried != 2 || r.Reason != semel.ReasonExhausted || r.Attempts != 3 {
			t.Errorf("%+v, %+v", counts, r)
		}
		if !met["m12"] {
			t.Error("no handler got the aborted transaction")
		}
		for id, n := range highest {
			if (n > 1) != (id == "m11") {
				t.Errorf("%s is at attempt %d", id, n)
			}
		}
	})
}
