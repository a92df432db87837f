package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/semel-go/semel/store"
)

var errHandler = errors.New("the handler failed")

func (s suite[Tx]) testMarks(t *T) {
	s.run(t, "law_1_marker_and_effect_commit_together", "A marker and its effect become visible in one commit.", func(t *T, h *fixture[Tx]) {
		b, v := h.begin(h.mark("a"))
		h.wantKinds(v, fresh)
		t.must(h.Effect(t.context(), b.Tx(0), "a"))
		h.wantCount("a", 0)
		h.commit(b, store.Ending{})
		h.wantCount("a", 1)
		h.wantKinds(h.asks(h.mark("a")), already(store.Applied))
	})
	s.run(t, "trap_1_a_redelivery_after_the_commit_is_a_duplicate",
		"A message that is delivered again after its commit finds its marker and has no second effect.", func(t *T, h *fixture[Tx]) {
			h.wantKinds(h.deliver(h.mark("a")), fresh)
			for range 3 {
				h.wantKinds(h.deliver(h.mark("a")), already(store.Applied))
			}
			h.wantCount("a", 1)
		})
	s.run(t, "trap_5_a_second_copy_from_the_producer_is_a_duplicate",
		"The identity alone decides: two deliveries with the same identity have one effect, whether or not the broker calls them redelivered.", func(t *T, h *fixture[Tx]) {
			h.wantKinds(h.deliver(h.contentMark("a", 1), h.mark("b")), fresh, fresh)
			h.wantKinds(h.deliver(h.mark("c"), h.contentMark("a", 1)), fresh, already(store.Applied))
			h.wantCount("a", 1)
		})
}

// testSetbacks tests batches in which a handler or the commit fails.
func (s suite[Tx]) testSetbacks(t *T) {
	s.run(t, "law_3_a_rollback_leaves_nothing", "After a rollback neither marker nor effect is left, and the message is fresh.", func(t *T, h *fixture[Tx]) {
		for range 3 {
			b, v := h.begin(h.markAll("a", "b")...)
			h.wantKinds(v, fresh, fresh)
			h.apply(b, h.markAll("a", "b"), v)
			b.Rollback(t.context())
		}
		h.wantCount("a", 0)
		h.deliver(h.mark("a"))
		h.wantCount("a", 1)
	})
	s.run(t, "trap_T14_a_failure_after_the_mark_and_before_the_effect_loses_nothing",
		"A message that was marked and whose handler then failed runs again.", func(t *T, h *fixture[Tx]) {
			b, _ := h.begin(h.mark("a"))
			b.Rollback(t.context())
			h.wantKinds(h.deliver(h.mark("a")), fresh)
			h.wantCount("a", 1)
		})
}

// testMixtures tests batches whose messages have different outcomes.
func (s suite[Tx]) testMixtures(t *T) {
	s.run(t, "trap_6_duplicates_inside_one_batch_have_one_effect",
		"Of equal identities in one batch the first is fresh and the others are duplicates.", func(t *T, h *fixture[Tx]) {
			v := h.deliver(h.markAll("b", "a", "b", "a", "a")...)
			h.wantKinds(v, fresh, fresh, already(store.Applied), already(store.Applied), already(store.Applied))
			h.wantCount("a", 1)
			h.wantCount("b", 1)
		})
	s.run(t, "trap_T12_duplicates_anywhere_harm_no_other_message",
		"Duplicates anywhere in a batch are reported as duplicates, and exactly the other messages are fresh.", s.scattered)
	s.run(t, "trap_10_the_outcome_of_a_marker_is_returned",
		"A marker does not always mean that its message was applied: the verdict contains the outcome.", func(t *T, h *fixture[Tx]) {
			outcomes := []store.Outcome{store.Applied, store.Parked, store.DeadLettered, store.Discarded}
			for _, o := range outcomes {
				m := h.mark(fmt.Sprint(o))
				m.As = o
				h.deliver(m)
			}
			for _, o := range outcomes {
				h.wantKinds(h.asks(h.mark(fmt.Sprint(o))), already(o))
			}
		})
	s.run(t, "trim_takes_marks_back", "A trimmed mark leaves nothing behind; the other marks of its batch stay.", func(t *T, h *fixture[Tx]) {
		h.deliver(h.mark("old"))
		marks := h.markAll("a", "b", "c", "old")
		b, v := h.begin(marks...)
		h.wantKinds(v, fresh, fresh, fresh, already(store.Applied))
		t.must(h.Effect(t.context(), b.Tx(0), "a"))
		h.commit(b, store.Ending{Trim: []int{1, 2, 3}})
		h.wantKinds(h.asks(marks...), already(store.Applied), fresh, fresh, already(store.Applied))
		h.wantCount("a", 1)
	})
}

func (s suite[Tx]) scattered(t *T, h *fixture[Tx]) {
	random := rand.New(rand.NewPCG(12, 12))
	seen := map[string]bool{}
	for _, n := range []int{1, 2, 50, 499, 500, 501, 1203} {
		marks := make([]store.Mark, n)
		want := make([]store.Verdict, n)
		for i := range marks {
			id := fmt.Sprint(random.IntN(3000))
			marks[i], want[i] = h.mark(id), fresh
			if seen[id] {
				want[i] = already(store.Applied)
			}
			seen[id] = true
		}
		h.wantKinds(h.deliver(marks...), want...)
	}
	for id := range seen {
		h.wantCount(id, 1)
	}
}

// testBatches tests transactions from their beginning to their end.
func (s suite[Tx]) testBatches(t *T) {
	s.run(t, "a_batch_without_marks_is_a_transaction", "Effects without marks commit together or not at all.", func(t *T, h *fixture[Tx]) {
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
	s.run(t, "trap_94_a_commit_with_a_cancelled_context_is_complete_or_nothing",
		"Whatever Commit returns, either both marker and effect are stored or neither, and a known outcome is correct.", func(t *T, h *fixture[Tx]) {
			b, v := h.begin(h.markAll("a", "b")...)
			h.apply(b, h.markAll("a", "b"), v)
			ctx, cancel := context.WithCancel(t.context())
			cancel()
			s.whole(h, b.Commit(ctx, store.Ending{}), "a", "b")
		})
	s.run(t, "the_end_of_begins_context_does_not_end_the_batch",
		"The context of Begin limits only the call, not the batch that it returned.", func(t *T, h *fixture[Tx]) {
			ctx, cancel := context.WithCancel(t.context())
			b, _, err := h.Store.Begin(ctx, store.TxOptions{}, h.markAll("a"))
			t.must(err)
			cancel()
			t.must(h.Effect(t.context(), b.Tx(0), "a"))
			h.commit(b, store.Ending{})
			h.wantCount("a", 1)
		})
}

// testEndedBatches tests calls of batches that have already ended.
func (s suite[Tx]) testEndedBatches(t *T) {
	s.run(t, "a_batch_that_has_ended_accepts_nothing",
		"After it has ended, a batch changes nothing, and its transaction refuses statements as aborted.", func(t *T, h *fixture[Tx]) {
			b, _ := h.begin(h.mark("a"))
			tx := b.Tx(0)
			h.commit(b, store.Ending{})
			s.refuses(h, tx)
			b.Rollback(t.context())
			b.Kill()
			if r := b.Commit(t.context(), store.Ending{Trim: []int{0}}); r.Outcome == store.Committed {
				t.Error("a second commit reports committed")
			}
			h.wantKinds(h.asks(h.mark("a")), already(store.Applied))
		})
	s.run(t, "law_11_a_killed_batch_leaves_nothing_and_blocks_nobody",
		"Kill ends a batch while its handler runs: nothing of it is stored, and other batches continue before the handler returns.", func(t *T, h *fixture[Tx]) {
			b, _ := h.begin(h.mark("a"))
			t.must(h.Effect(t.context(), b.Tx(0), "a"))
			b.Kill()
			h.wantKinds(h.deliver(h.mark("a")), fresh)
			h.wantCount("a", 1)
			if r := b.Commit(t.context(), store.Ending{}); r.Outcome != store.NotCommitted {
				t.Errorf("Commit of a killed batch returned %+v, want not committed", r)
			}
			h.deliver(h.mark("b"))
			h.wantCount("a", 1)
		})
	s.run(t, "batches_at_once_lose_no_effect", "All effects of batches that run at the same time are stored.", func(t *T, h *fixture[Tx]) {
		runConcurrently(8, func(i int) {
			for j := range 5 {
				b, _ := h.begin(h.mark(fmt.Sprint(i, j)))
				t.must(h.Effect(t.context(), b.Tx(0), "sum"))
				h.commit(b, store.Ending{})
			}
		})
		h.wantCount("sum", 40)
	})
}

// whole checks that the batch of the given messages was stored completely or not at all, in agreement with the result
// of its commit.
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
		h.t.Fatal("a transaction that has ended accepted an effect")
	}
	h.wantClass(err, store.ClassAborted)
	h.wantCount("late", 0)
}

// testCopies tests copies of a message that are processed at the same time. The laws do not depend on the order of the
// copies, so no case needs to know which copy waits for the other.
func (s suite[Tx]) testCopies(t *T) {
	t.Run("trap_7_a_copy_is_a_duplicate_only_after_the_winner_committed",
		"A copy of a message in flight is reported as a duplicate only when the effect of the first is visible.", func(t *T) { s.race(t, true) })
	t.Run("trap_8_a_copy_runs_when_the_winner_rolled_back", "A copy of a message in flight is fresh if the first is rolled back.", func(t *T) { s.race(t, false) })
	s.run(t, "trap_T21_fifty_copies_at_once_have_one_effect",
		"Of any number of concurrent copies exactly one is fresh, and there is one effect.", func(t *T, h *fixture[Tx]) {
			var mu sync.Mutex
			fresh := 0
			runConcurrently(50, func(int) {
				if v := h.deliver(h.mark("a")); v[0].Kind == store.Fresh {
					mu.Lock()
					defer mu.Unlock()
					fresh++
				}
			})
			if fresh != 1 {
				t.Errorf("%d of 50 copies were fresh, want 1", fresh)
			}
			h.wantCount("a", 1)
		})
}

// testWaitingBatches tests batches that wait for a copy of a message in another batch.
func (s suite[Tx]) testWaitingBatches(t *T) {
	s.run(t, "overlapping_batches_in_any_order_do_not_deadlock",
		"Every batch marks in the same order, so batches with common identities wait for each other and none fails.", func(t *T, h *fixture[Tx]) {
			ids := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
			runConcurrently(8, func(i int) {
				rotated := append(append([]string{}, ids[i:]...), ids[:i]...)
				h.deliver(h.markAll(rotated...)...)
			})
			for _, id := range ids {
				h.wantCount(id, 1)
			}
		})
	s.run(t, "a_wait_ends_with_its_context",
		"Begin returns when its context ends, with an error that is no message's fault, and leaves nothing open.", func(t *T, h *fixture[Tx]) {
			b, _ := h.begin(h.mark("a"))
			ctx, cancel := context.WithCancel(t.context())
			ended := make(chan error, 1)
			go func() {
				_, _, err := h.Store.Begin(ctx, store.TxOptions{}, h.markAll("a"))
				ended <- err
			}()
			cancel()
			err := <-ended
			if err == nil {
				t.Fatal("Begin returned no error while a copy was open")
			}
			h.wantClass(err, store.ClassDown, store.ClassContended)
			h.commit(b, store.Ending{})
			h.wantKinds(h.asks(h.mark("a")), already(store.Applied))
		})
	t.Run("D3_a_store_with_one_open_batch_at_a_time_declares_it",
		"A store that allows only one open batch declares it, so that no lease ends while Begin waits for the open batch.", func(t *T) {
			if says := s.open(t).Store.Limits().SingleWriter; says != s.h.Can.OneWriter {
				t.Errorf("the store's limits say %v, and Can.OneWriter says %v", says, s.h.Can.OneWriter)
			}
		})
	if s.h.Can.OneWriter {
		return
	}
	s.run(t, "case_5_a_copy_in_flight_elsewhere_is_busy_in_time",
		"A mark waits for a copy in flight no longer than MarkLock; then the verdict is busy, or the batch fails.", func(t *T, h *fixture[Tx]) {
			first, _ := h.begin(h.mark("a"))
			b, v, err := h.Store.Begin(t.context(), store.TxOptions{MarkLock: time.Millisecond}, h.markAll("a"))
			if err != nil {
				h.wantClass(err, store.ClassContended)
			} else {
				h.wantKinds(v, busy)
				b.Rollback(t.context())
			}
			h.commit(first, store.Ending{})
		})
}

// race processes a message and its copy at the same time. The parameter commits says whether the first of the two
// batches commits or rolls back.
func (s suite[Tx]) race(t *T, commits bool) {
	h := s.open(t)
	for i := range 20 {
		id := string(rune('a' + i))
		winner, v := h.begin(h.mark(id))
		h.wantKinds(v, fresh)
		t.must(h.Effect(t.context(), winner.Tx(0), id))
		verdict := make(chan store.Verdict, 1)
		go func() { verdict <- h.copyOf(id) }()
		if commits {
			h.commit(winner, store.Ending{})
		} else {
			winner.Rollback(t.context())
		}
		want := fresh
		if commits {
			want = already(store.Applied)
		}
		if got := <-verdict; got != want {
			t.Errorf("the copy's verdict is %s, want %s", got, want)
		}
		h.wantCount(id, 1)
	}
}

// copyOf delivers a copy of a message and returns the store's answer. If the copy is a duplicate, copyOf checks that
// the effect of the message is visible.
func (h *fixture[Tx]) copyOf(id string) store.Verdict {
	b, v, err := h.Store.Begin(h.t.context(), store.TxOptions{}, h.markAll(id))
	if err != nil {
		h.t.Error(err)
		return store.Verdict{}
	}
	if v[0].Kind == store.Fresh {
		if err := h.Effect(h.t.context(), b.Tx(0), id); err != nil {
			h.t.Error(err)
		}
	} else {
		h.wantCount(id, 1)
	}
	if r := b.Commit(h.t.context(), store.Ending{}); r.Outcome != store.Committed {
		h.t.Errorf("the copy's Commit returned %+v", r)
	}
	return v[0]
}
