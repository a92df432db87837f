package storetest

import (
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

func act(verb string) contract.Act {
	return contract.Act{Verb: verb, Who: "ana", Why: "because\x00\xff"}
}

func (h *fixture[Tx]) wantActs(number int64, want ...string) {
	h.t.Helper()
	acts, err := h.inbox().Acts(h.t.context(), number, 0)
	h.t.must(err)
	if len(acts) != len(want) {
		h.t.Fatalf("%d acts, want %d: %+v", len(acts), len(want), acts)
	}
	for i, a := range acts {
		if got := a.Verb + " " + a.Result; got != want[i] || a.Who != "ana" || a.Why == "" || a.At.IsZero() || a.Row == 0 {
			h.t.Errorf("act %d is %+v, want %q", i, a, want[i])
		}
	}
}

// acts are the laws of what operators do.
func (s suite[Tx]) acts(t *T) {
	t.Run("discard_closes_a_row_and_its_marker",
		"A discarded row is closed with its marker in one step that is recorded, and copies find it discarded.",
		func(t *T) {
			h := s.opened(t)
			r := h.park("a")
			t.must(h.inbox().Discard(t.context(), r.Number, r.Revision, act("discard")))
			if after := h.row("a", false); after.State != contract.StateDiscarded || after.Revision == r.Revision {
				t.Errorf("the row is %+v", after)
			}
			h.wantKinds(h.asks(h.print("a", 1)), already(semel.Discarded))
			h.wantActs(r.Number, "discard done")
		})
	t.Run("discarding_a_conflict_leaves_the_marker",
		"A discarded conflict closes its own row only.",
		func(t *T) {
			h := s.opened(t)
			h.deliver(h.print("a", 1))
			h.conflict("a", 2)
			r := h.row("a", true)
			t.must(h.inbox().Discard(t.context(), r.Number, r.Revision, act("discard")))
			h.wantKinds(h.asks(h.print("a", 1)), already(semel.Applied))
		})
}

// refusals are the laws of acts that come too late.
func (s suite[Tx]) refusals(t *T) {
	t.Run("an_act_on_a_changed_row_does_nothing",
		"An act that names an old revision, or a row that is not there, is refused as changed and leaves no trace.",
		func(t *T) {
			h := s.opened(t)
			r := h.park("a")
			for _, at := range [][2]int64{{r.Number, r.Revision + 1}, {r.Number + 1, r.Revision}, {-1, 1}} {
				if err := h.inbox().Discard(t.context(), at[0], at[1], act("discard")); !errors.Is(err, semel.ErrChanged) {
					t.Errorf("discard says %v, want ErrChanged", err)
				}
				if err := h.inbox().FailRetry(t.context(), at[0], at[1], "e", act("retry")); !errors.Is(err, semel.ErrChanged) {
					t.Errorf("a failed retry says %v, want ErrChanged", err)
				}
				h.wantRefused(contract.StoredRow{Number: at[0], Revision: at[1]}, semel.ErrChanged)
			}
			h.wantActs(0)
		})
	t.Run("a_closed_row_stays_closed",
		"A row that is discarded or completed takes no further act.",
		func(t *T) {
			h := s.opened(t)
			r := h.park("a")
			t.must(h.inbox().Discard(t.context(), r.Number, r.Revision, act("discard")))
			r = h.row("a", false)
			if err := h.inbox().Discard(t.context(), r.Number, r.Revision, act("discard")); !errors.Is(err, semel.ErrState) {
				t.Errorf("a second discard says %v, want ErrState", err)
			}
			h.wantRefused(r, semel.ErrChanged)
			h.wantActs(r.Number, "discard done")
		})
}

// records are the laws of what is kept of acts.
func (s suite[Tx]) records(t *T) {
	t.Run("a_failed_retry_is_recorded",
		"A retry that failed adds an attempt, the error and the act, and the row stays parked.",
		func(t *T) {
			h := s.opened(t)
			r := h.park("a")
			t.must(h.inbox().FailRetry(t.context(), r.Number, r.Revision, "broke", act("retry")))
			after := h.row("a", false)
			if after.Attempts != r.Attempts+1 || after.LastError != "broke" || after.FirstError != "broke" || after.State != contract.StateParked || after.Revision == r.Revision {
				t.Errorf("the row is %+v", after)
			}
			t.must(h.inbox().FailRetry(t.context(), after.Number, after.Revision, "again", act("retry")))
			if after = h.row("a", false); after.FirstError != "broke" || after.LastError != "again" {
				t.Errorf("the row is %+v", after)
			}
			h.wantActs(r.Number, "retry broke", "retry again")
		})
	t.Run("acts_are_listed_oldest_first",
		"Acts are told in the order in which they were done, of one row or of all, up to a limit.",
		func(t *T) {
			h := s.opened(t)
			a, b := h.park("a"), h.park("b")
			t.must(h.inbox().FailRetry(t.context(), b.Number, b.Revision, "x", act("retry")))
			h.retry(a)
			t.must(h.inbox().Discard(t.context(), b.Number, h.row("b", false).Revision, act("discard")))
			h.wantActs(0, "retry x", "retry done", "discard done")
			h.wantActs(b.Number, "retry x", "discard done")
			acts, err := h.inbox().Acts(t.context(), 0, 2)
			t.must(err)
			if len(acts) != 2 {
				t.Errorf("%d acts with a limit of 2", len(acts))
			}
		})
}
