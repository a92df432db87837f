package storetest

import (
	"errors"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// rivals are the laws of several people at one identity.
func (s suite[Tx]) rivals(t *T) {
	t.Run("trap_144_of_twenty_retries_of_one_row_at_once_one_is_done",
		"Of many who retry a row at once one succeeds and the others are told that it has changed; it takes effect once.",
		func(t *T) {
			h := s.opened(t)
			r := h.park("a")
			var mu sync.Mutex
			done, changed := 0, 0
			together(20, func(int) {
				err := errors.Join(h.requeuer().Requeue(t.context(), act("retry"), r.Seen())...)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					done++
				case errors.Is(err, semel.ErrChanged):
					changed++
				default:
					t.Error(err)
				}
			})
			if done != 1 || changed != 19 {
				t.Errorf("%d were done and %d were told of the change, want 1 and 19", done, changed)
			}
			h.works(r.Number)
			h.wantCount("a", 1)
			h.wantActs(r.Number, "retry done")
		})
	t.Run("trap_144_of_a_retry_and_a_discard_at_once_one_is_done",
		"A row is retried or discarded, never both.",
		func(t *T) {
			for range 10 {
				h := s.opened(t)
				r := h.park("a")
				var retried, discarded error
				together(2, func(i int) {
					if i == 0 {
						discarded = errors.Join(h.inbox().Discard(t.context(), act("discard"), r.Seen())...)
					} else {
						retried = errors.Join(h.requeuer().Requeue(t.context(), act("retry"), r.Seen())...)
					}
				})
				late, want := retried, store.StateDiscarded
				if discarded != nil {
					late, want = discarded, store.StateFailedRetryable
				}
				if (retried == nil) == (discarded == nil) || !errors.Is(late, semel.ErrChanged) {
					t.Errorf("the retry says %v, the discard %v", retried, discarded)
				}
				if got := h.row("a", false).State; got != want {
					t.Errorf("the row is %s, want %s", got, want)
				}
			}
		})
	t.Run("a_conflict_is_not_retried_while_the_identity_is_applied",
		"A retry of a conflict is refused while another content is applied, because it would double; nothing is changed.",
		func(t *T) {
			h := s.opened(t)
			h.deliver(h.print("a", 1))
			h.conflict("a", 2)
			before := h.row("a", true)
			if err := errors.Join(h.requeuer().Requeue(t.context(), act("retry"), before.Seen())...); !errors.Is(err, semel.ErrConflict) {
				t.Errorf("%v, want ErrConflict", err)
			}
			if after := h.row("a", true); after.Revision != before.Revision || after.State != store.StateParked {
				t.Errorf("the row is %+v", after)
			}
		})
}
