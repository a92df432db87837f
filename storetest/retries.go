package storetest

import (
	"errors"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

func (h *fixture[Tx]) beginRow(r contract.StoredRow) (contract.Batch[Tx], error) {
	return h.Store.(contract.RowRetrier[Tx]).BeginRow(h.t.context(), contract.TxOptions{}, r.Number, r.Revision, act("retry"))
}

// retry runs the effect of a row and completes it.
func (h *fixture[Tx]) retry(r contract.StoredRow) {
	h.t.Helper()
	b, err := h.beginRow(r)
	h.t.must(err)
	h.t.must(h.Effect(h.t.context(), b.Tx(0), r.Key.ID))
	h.commit(b, contract.Ending{})
}

func (h *fixture[Tx]) wantRefused(r contract.StoredRow, want error) {
	h.t.Helper()
	b, err := h.beginRow(r)
	if err == nil {
		b.Rollback(h.t.context())
	}
	if !errors.Is(err, want) {
		h.t.Errorf("a retry of row %d says %v, want %v", r.Number, err, want)
	}
}

// retries are the laws of running a row's message again.
func (s suite[Tx]) retries(t *T) {
	t.Run("a_retry_completes_row_marker_and_effect_in_one_commit",
		"A retried row is completed, its marker applied, its act recorded and its effect there, all at once.",
		func(t *T) {
			h := s.opened(t)
			r := h.park("a")
			b, err := h.beginRow(r)
			t.must(err)
			t.must(h.Effect(t.context(), b.Tx(0), "a"))
			if before := h.row("a", false); before.State != contract.StateParked {
				t.Errorf("before the commit the row is %s", before.State)
			}
			h.commit(b, contract.Ending{})
			after := h.row("a", false)
			if after.State != contract.StateCompleted || after.Attempts != r.Attempts+1 || after.Revision == r.Revision {
				t.Errorf("the row is %+v", after)
			}
			h.wantKinds(h.deliver(h.print("a", 1)), already(semel.Applied))
			h.wantCount("a", 1)
			h.wantActs(r.Number, "retry done")
		})
	t.Run("a_retry_that_is_rolled_back_leaves_everything_as_it_was",
		"After a rollback the row has its revision, the marker its outcome, and no act is recorded.",
		func(t *T) {
			h := s.opened(t)
			r := h.park("a")
			b, err := h.beginRow(r)
			t.must(err)
			t.must(h.Effect(t.context(), b.Tx(0), "a"))
			b.Rollback(t.context())
			if after := h.row("a", false); after.Revision != r.Revision || after.State != contract.StateParked {
				t.Errorf("the row is %+v", after)
			}
			h.wantKinds(h.asks(h.print("a", 1)), already(semel.Parked))
			h.wantCount("a", 0)
			h.wantActs(0)
			h.retry(r)
			h.wantCount("a", 1)
		})
}

// rivals are the laws of several operators at one row.
func (s suite[Tx]) rivals(t *T) {
	t.Run("trap_144_twenty_retries_of_one_row_at_once_have_one_effect",
		"Of many who retry a row at once one succeeds and the others are told that it has changed.",
		func(t *T) { s.atOnce(t) })
	t.Run("trap_144_a_retry_and_a_discard_at_once_exclude_each_other",
		"A row is retried or discarded, never both.",
		func(t *T) {
			for range 10 {
				h := s.opened(t)
				r := h.park("a")
				var discarded error
				together(2, func(i int) {
					if i == 0 {
						discarded = h.inbox().Discard(t.context(), r.Number, r.Revision, act("discard"))
					} else if b, err := h.beginRow(r); err == nil {
						t.must(h.Effect(t.context(), b.Tx(0), "a"))
						h.commit(b, contract.Ending{})
					}
				})
				state, want := contract.StateCompleted, 1
				if discarded == nil {
					state, want = contract.StateDiscarded, 0
				}
				if got := h.row("a", false).State; got != state {
					t.Errorf("discard said %v and the row is %s", discarded, got)
				}
				h.wantCount("a", want)
			}
		})
}

func (s suite[Tx]) atOnce(t *T) {
	h := s.opened(t)
	r := h.park("a")
	var mu sync.Mutex
	done, changed := 0, 0
	together(20, func(int) {
		b, err := h.beginRow(r)
		mu.Lock()
		switch {
		case err == nil:
			done++
		case errors.Is(err, semel.ErrChanged):
			changed++
		default:
			t.Error(err)
		}
		mu.Unlock()
		if err == nil {
			t.must(h.Effect(t.context(), b.Tx(0), "a"))
			h.commit(b, contract.Ending{})
		}
	})
	if done != 1 || changed != 19 {
		t.Errorf("%d retries began and %d were told of the change, want 1 and 19", done, changed)
	}
	h.wantCount("a", 1)
	h.wantActs(r.Number, "retry done")
}
