package storetest

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/store"
)

// batches are the laws of a transaction's life.
func (s suite[Tx]) batches(t *T) {
	t.Run("a_batch_without_marks_is_a_transaction",
		"Effects without marks commit together or not at all.",
		func(t *T) {
			h := s.opened(t)
			for _, commit := range []bool{false, true} {
				b, _ := h.begin()
				t.must(h.Effect(t.context(), b.Tx(store.All), "a"))
				if commit {
					h.commit(b, store.Ending{})
				} else {
					b.Rollback(t.context())
				}
			}
			h.wantCount("a", 1)
		})
	t.Run("trap_94_a_commit_with_a_cancelled_context_is_whole_or_nothing",
		"Whatever a commit says, either marker and effect are there or neither, and it says which if it claims to know.",
		func(t *T) {
			h := s.opened(t)
			b, v := h.begin(h.markAll("a", "b")...)
			h.apply(b, h.markAll("a", "b"), v)
			ctx, cancel := context.WithCancel(t.context())
			cancel()
			s.whole(h, b.Commit(ctx, store.Ending{}), "a", "b")
		})
	t.Run("the_end_of_begins_context_does_not_end_the_batch",
		"The context given to Begin ends the call and not the batch that it returned.",
		func(t *T) {
			h := s.opened(t)
			ctx, cancel := context.WithCancel(t.context())
			b, _, err := h.Store.Begin(ctx, store.TxOptions{}, h.markAll("a"))
			t.must(err)
			cancel()
			t.must(h.Effect(t.context(), b.Tx(0), "a"))
			h.commit(b, store.Ending{})
			h.wantCount("a", 1)
		})
}

// ends are the laws of what a batch leaves behind.
func (s suite[Tx]) ends(t *T) {
	t.Run("a_batch_that_is_over_takes_nothing_more",
		"After its end a batch changes nothing, and its transaction refuses statements as aborted.",
		func(t *T) {
			h := s.opened(t)
			b, _ := h.begin(h.mark("a"))
			tx := b.Tx(0)
			h.commit(b, store.Ending{})
			s.refuses(h, tx)
			b.Rollback(t.context())
			b.Kill()
			if r := b.Commit(t.context(), store.Ending{Trim: []int{0}}); r.Outcome == store.Committed {
				t.Error("a second commit claims to have committed")
			}
			h.wantKinds(h.asks(h.mark("a")), already(store.Applied))
		})
	t.Run("law_11_a_killed_batch_leaves_nothing_and_blocks_nobody",
		"Kill ends a batch under its handler: nothing of it is left, and others go on before the handler returns.",
		func(t *T) {
			h := s.opened(t)
			b, _ := h.begin(h.mark("a"))
			t.must(h.Effect(t.context(), b.Tx(0), "a"))
			b.Kill()
			h.wantKinds(h.deliver(h.mark("a")), fresh)
			h.wantCount("a", 1)
			if r := b.Commit(t.context(), store.Ending{}); r.Outcome != store.NotCommitted {
				t.Errorf("the commit of a killed batch says %+v, want not committed", r)
			}
			h.deliver(h.mark("b"))
			h.wantCount("a", 1)
		})
	t.Run("batches_at_once_lose_no_effect",
		"Effects of batches that run at the same time are all there.",
		func(t *T) {
			h := s.opened(t)
			together(8, func(i int) {
				for j := range 5 {
					b, _ := h.begin(h.mark(fmt.Sprint(i, j)))
					t.must(h.Effect(t.context(), b.Tx(0), "sum"))
					h.commit(b, store.Ending{})
				}
			})
			h.wantCount("sum", 40)
		})
}

// whole checks that the batch of these messages is there or not, as it said.
func (s suite[Tx]) whole(h *fixture[Tx], r store.Result, ids ...string) {
	h.t.Helper()
	want := already(store.Applied)
	switch r.Outcome {
	case store.NotCommitted:
		want = fresh
	case store.CommitUnknown:
		want = h.asks(h.mark(ids[0]))[0]
	}
	count := 0
	if want.Already(store.Applied) {
		count = 1
	}
	for _, id := range ids {
		h.wantCount(id, count)
		h.wantKinds(h.asks(h.mark(id)), want)
	}
	h.deliver(h.markAll(ids...)...)
	for _, id := range ids {
		h.wantCount(id, 1)
	}
}

func (s suite[Tx]) refuses(h *fixture[Tx], tx Tx) {
	h.t.Helper()
	err := h.Effect(h.t.context(), tx, "late")
	if err == nil {
		h.t.Fatal("a transaction that is over took an effect")
	}
	if c := h.Store.Classify(err); c != store.ClassAborted {
		h.t.Errorf("%v is of class %v, want aborted", err, c)
	}
	h.wantCount("late", 0)
}
