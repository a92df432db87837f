package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/semel-go/semel/store"
)

// copies are the laws of copies that are in flight at the same time. They hold
// whichever comes first, so that no test needs to know who waits.
func (s suite[Tx]) copies(t *T) {
	t.Run("trap_7_a_copy_is_a_duplicate_only_after_the_winner_committed",
		"A copy of a message in flight is called a duplicate only when the effect of the other is there.",
		func(t *T) { s.race(t, true) })
	t.Run("trap_8_a_copy_runs_when_the_winner_rolled_back",
		"A copy of a message in flight is fresh when the other was rolled back.",
		func(t *T) { s.race(t, false) })
	t.Run("trap_T21_fifty_copies_at_once_have_one_effect",
		"Of any number of copies at once one is fresh, and there is one effect.",
		func(t *T) {
			h := s.opened(t)
			var mu sync.Mutex
			fresh := 0
			together(50, func(int) {
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

// waits are the laws of waiting for a copy in flight.
func (s suite[Tx]) waits(t *T) {
	t.Run("overlapping_batches_in_any_order_do_not_deadlock",
		"Batches mark in one order, so that those with common identities wait for each other and none fails.",
		func(t *T) {
			h := s.opened(t)
			ids := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
			together(8, func(i int) {
				rotated := append(append([]string{}, ids[i:]...), ids[:i]...)
				h.deliver(h.markAll(rotated...)...)
			})
			for _, id := range ids {
				h.wantCount(id, 1)
			}
		})
	t.Run("a_wait_ends_with_its_context",
		"Begin returns when its context ends, with an error that is no message's fault, and leaves nothing open.",
		func(t *T) {
			h := s.opened(t)
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
				t.Fatal("Begin came back without an error beside an open copy")
			}
			if c := h.Store.Classify(err); c != store.ClassDown && c != store.ClassContended {
				t.Errorf("%v is of class %v, want down or contended", err, c)
			}
			h.commit(b, store.Ending{})
			h.wantKinds(h.asks(h.mark("a")), already(store.Applied))
		})
	t.Run("D3_a_store_whose_batches_take_turns_says_so",
		"A store of which one batch at a time can be open says so, so that nothing waits for its turn inside Begin while its lease ends.",
		func(t *T) {
			if says := s.opened(t).Store.Limits().SingleWriter; says != s.h.Can.OneWriter {
				t.Errorf("the store says %v, and of the ability OneWriter the test says %v", says, s.h.Can.OneWriter)
			}
		})
	if s.h.Can.OneWriter {
		return
	}
	t.Run("case_5_a_copy_in_flight_elsewhere_is_busy_in_time",
		"A mark waits for a copy in flight no longer than MarkLock; then it is busy, alone or with its batch.",
		func(t *T) {
			h := s.opened(t)
			first, _ := h.begin(h.mark("a"))
			b, v, err := h.Store.Begin(t.context(), store.TxOptions{MarkLock: time.Millisecond}, h.markAll("a"))
			if err != nil {
				if c := h.Store.Classify(err); c != store.ClassContended {
					t.Errorf("%v is of class %v, want contended", err, c)
				}
			} else {
				h.wantKinds(v, busy)
				b.Rollback(t.context())
			}
			h.commit(first, store.Ending{})
		})
}

// race lets a winner and a copy meet in whatever order the scheduler makes.
func (s suite[Tx]) race(t *T, commits bool) {
	h := s.opened(t)
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

// copyOf delivers a copy and returns its verdict; that of a duplicate only if
// the effect is visible. It runs in a goroutine of its own.
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
		h.t.Errorf("the copy's commit says %+v", r)
	}
	return v[0]
}
