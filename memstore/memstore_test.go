package memstore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

func appliedMarks(scope int64, id string) []store.Mark {
	return []store.Mark{{Scope: scope, ID: []byte(id), As: store.Applied}}
}

func begin(t *testing.T, s *memstore.Store, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict) {
	t.Helper()
	b, v, err := s.Begin(t.Context(), o, marks)
	if err != nil {
		t.Fatal(err)
	}
	return b, v
}

func TestAMarkWaitsForACopyInFlightNoLongerThanItMay(t *testing.T) {
	t.Run("trap_9_a_waiter_gives_up_after_its_patience", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := memstore.New()
			first, _ := begin(t, s, store.TxOptions{}, appliedMarks(1, "a"))
			start := time.Now()
			second, v := begin(t, s, store.TxOptions{MarkLock: 50 * time.Millisecond}, appliedMarks(1, "a"))
			if v[0].Kind != store.Busy || time.Since(start) != 50*time.Millisecond {
				t.Errorf("verdict %v after %v, want Busy after 50ms", v[0].Kind, time.Since(start))
			}
			second.Rollback(t.Context())
			first.Rollback(t.Context())
			if _, v = begin(t, s, store.TxOptions{}, appliedMarks(1, "a")); v[0].Kind != store.Fresh {
				t.Errorf("after the rollback the verdict is %v, want Fresh", v[0].Kind)
			}
		})
	})
	t.Run("a_waiter_gives_up_when_its_context_ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := memstore.New()
			begin(t, s, store.TxOptions{}, appliedMarks(1, "a"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _, err := s.Begin(ctx, store.TxOptions{}, appliedMarks(1, "a"))
			if !errors.Is(err, context.DeadlineExceeded) || s.Classify(err) != store.ClassDown {
				t.Errorf("got %v (class %v), want the deadline, as down", err, s.Classify(err))
			}
		})
	})
}

func TestABatchDoesNotCommitIfAnotherChangedAValueThatItRead(t *testing.T) {
	s := memstore.New()
	one, _ := begin(t, s, store.TxOptions{}, nil)
	two, _ := begin(t, s, store.TxOptions{}, nil)
	for _, b := range []store.Batch[*memstore.Tx]{one, two} {
		if v, err := b.Tx(store.All).Get("k"); v != nil || err != nil {
			t.Fatal(v, err)
		}
		if err := b.Tx(store.All).Set("k", []byte("v")); err != nil {
			t.Fatal(err)
		}
	}
	if r := one.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed {
		t.Fatal(r)
	}
	if r := two.Commit(t.Context(), store.Ending{}); r.Outcome != store.NotCommitted || r.Class != store.ClassContended {
		t.Errorf("got %+v, want not committed, contended", r)
	}
}

func TestATransactionSeesItsOwnWrites(t *testing.T) {
	s := memstore.New()
	b, _ := begin(t, s, store.TxOptions{}, nil)
	tx := b.Tx(store.All)
	steps := []struct {
		do   func() error
		want string
	}{
		{func() error { return tx.Add("n", 2) }, "2"},
		{func() error { return tx.Add("n", -5) }, "-3"},
		{func() error { return tx.Set("n", []byte("7")) }, "7"},
		{func() error { return tx.Add("n", 1) }, "8"},
		{func() error { return tx.Set("n", []byte("a word")) }, "a word"},
		{func() error { return tx.Delete("n") }, ""},
		{func() error { return tx.Add("n", 4) }, "4"},
	}
	for i, step := range steps {
		if err := step.do(); err != nil {
			t.Fatal(i, err)
		}
		if got, err := tx.Get("n"); string(got) != step.want || err != nil {
			t.Errorf("step %d: got %q, %v, want %q", i, got, err, step.want)
		}
	}
	b.Commit(t.Context(), store.Ending{})
	if got := s.Get("n"); string(got) != "4" {
		t.Errorf("committed %q, want 4", got)
	}
	if err := tx.Add("n", 1); !errors.Is(err, memstore.ErrTxDone) {
		t.Errorf("after the commit Add says %v, want ErrTxDone", err)
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		op      string
		outcome store.CommitOutcome
		left    string
	}{
		{"commit-before", store.NotCommitted, ""},
		{"commit-after", store.CommitUnknown, "1"},
	} {
		t.Run(c.op, func(t *testing.T) {
			s := memstore.New(memstore.Fail(func(op string) error {
				if op == c.op {
					return errors.New("cut")
				}
				return nil
			}))
			b, _ := begin(t, s, store.TxOptions{}, appliedMarks(1, "a"))
			if err := b.Tx(0).Add("n", 1); err != nil {
				t.Fatal(err)
			}
			r := b.Commit(t.Context(), store.Ending{})
			if r.Outcome != c.outcome || r.Class != store.ClassDown || string(s.Get("n")) != c.left {
				t.Errorf("got %+v and %q", r, s.Get("n"))
			}
		})
	}
}

func BenchmarkBatchOf500(b *testing.B) {
	s := memstore.New()
	marks := make([]store.Mark, 500)
	ids := make([][16]byte, 500)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		for i := range marks {
			ids[i] = [16]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(i), byte(i >> 8)}
			marks[i] = store.Mark{Scope: 1, ID: ids[i][:], As: store.Applied}
		}
		batch, _, err := s.Begin(b.Context(), store.TxOptions{}, marks)
		if err != nil {
			b.Fatal(err)
		}
		for i := range marks {
			if err := batch.Tx(i).Add("n", 1); err != nil {
				b.Fatal(err)
			}
		}
		batch.Commit(b.Context(), store.Ending{})
	}
}
