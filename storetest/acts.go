package storetest

import (
	"context"
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

func act(verb string) store.Act {
	return store.Act{Verb: verb, Who: "ana", Why: "because\x00\xff"}
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
			t.must(errors.Join(h.inbox().Discard(t.context(), act("discard"), r.Seen())...))
			if after := h.row("a", false); after.State != store.StateDiscarded || after.Revision == r.Revision {
				t.Errorf("the row is %+v", after)
			}
			h.wantKinds(h.asks(h.print("a", 1)), already(store.Discarded))
			h.wantActs(r.Number, "discard done")
		})
	t.Run("discarding_a_conflict_leaves_the_marker",
		"A discarded conflict closes its own row only.",
		func(t *T) {
			h := s.opened(t)
			h.deliver(h.print("a", 1))
			h.conflict("a", 2)
			r := h.row("a", true)
			t.must(errors.Join(h.inbox().Discard(t.context(), act("discard"), r.Seen())...))
			h.wantKinds(h.asks(h.print("a", 1)), already(store.Applied))
		})
}

// requeues are the laws of rows that people have worked on again.
func (s suite[Tx]) requeues(t *T) {
	t.Run("a_retry_makes_a_row_due_and_whoever_claims_it_works_on_it", "A parked row that somebody retries waits with its marker, is claimed, and takes effect once.", func(t *T) {
		h := s.opened(t)
		r := h.park("a")
		t.must(errors.Join(h.requeuer().Requeue(t.context(), act("retry"), r.Seen())...))
		if after := h.number(r.Number); after.State != store.StateFailedRetryable || after.Revision == r.Revision {
			t.Errorf("the row is %+v", after)
		}
		h.wantOutcome("a", store.Waiting)
		h.wantActs(r.Number, "retry done")
		h.works(r.Number)
		h.wantOutcome("a", store.Applied)
		h.wantCount("a", 1)
	})
	t.Run("a_wait_that_somebody_ends_is_due_now", "A row that waits for later is due once somebody says so.", func(t *T) {
		h := s.opened(t)
		r := h.put("a", store.Row{State: store.StateFailedRetryable, After: long, Message: &semel.Message{Body: []byte("a")}})
		t.must(errors.Join(h.requeuer().Requeue(t.context(), act("retry"), r.Seen())...))
		if err := errors.Join(h.requeuer().Requeue(t.context(), act("retry"), h.number(r.Number).Seen())...); !errors.Is(err, semel.ErrState) {
			t.Errorf("a second time: %v, want ErrState", err)
		}
		h.works(r.Number)
	})
	t.Run("law_5_a_claim_that_a_person_released_ends_nothing", "Who had a row that a person released or discarded can end it no more.", func(t *T) {
		for verb, do := range map[string]func(h *fixture[Tx], r store.StoredRow) error{
			"release": func(h *fixture[Tx], r store.StoredRow) error {
				return errors.Join(h.requeuer().Release(t.context(), act("release"), r.Seen())...)
			},
			"discard": func(h *fixture[Tx], r store.StoredRow) error {
				return errors.Join(h.inbox().Discard(t.context(), act("discard"), r.Seen())...)
			},
		} {
			h := s.opened(t)
			c := h.claimed("a")[0]
			if s.h.Can.OneWriter { // nobody acts while a batch is open
				t.must(do(h, h.number(c.Number)))
				h.wantKinds(h.asks(h.asking(c)), store.Verdict{Kind: store.ClaimLost})
				h.wantActs(c.Number, verb+" done")
				continue
			}
			b, v := h.begin(h.asking(c))
			h.wantKinds(v, fresh)
			t.must(do(h, h.number(c.Number)))
			if r := b.Commit(t.context(), store.Ending{Claims: []store.ClaimEnding{{Claim: c.Claim, Event: store.RowCompleted}}}); r.Outcome != store.NotCommitted || r.Class != store.ClassClaimLost {
				t.Errorf("after %s: %+v", verb, r)
			}
			h.wantActs(c.Number, verb+" done")
			if verb == "release" {
				h.works(c.Number)
			} else {
				h.wantOutcome("a", store.Discarded)
			}
		}
	})
	t.Run("an_identity_is_worked_on_once_at_a_time", "Of the rows of an identity one waits at a time, and none while it is applied.", func(t *T) {
		h := s.opened(t)
		first := h.park("a")
		h.conflict("a", 2)
		other := h.row("a", true)
		t.must(errors.Join(h.requeuer().Requeue(t.context(), act("retry"), other.Seen())...))
		if err := errors.Join(h.requeuer().Requeue(t.context(), act("retry"), first.Seen())...); !errors.Is(err, semel.ErrConflict) {
			t.Errorf("beside another that waits: %v, want ErrConflict", err)
		}
		h.works(other.Number)
		if err := errors.Join(h.requeuer().Requeue(t.context(), act("retry"), first.Seen())...); !errors.Is(err, semel.ErrConflict) {
			t.Errorf("of an identity that is applied: %v, want ErrConflict", err)
		}
		h.wantKinds(h.asks(h.print("a", 2)), already(store.Applied))
		h.wantKinds(h.asks(h.print("a", 1)), conflict)
		h.wantActs(first.Number)
	})
	t.Run("what_is_done_is_not_worked_on_again", "A row that is closed, or that changed meanwhile, is refused and stays.", func(t *T) {
		h := s.opened(t)
		r := h.park("a")
		for _, do := range []func(context.Context, store.Act, ...store.RowRevision) []error{h.requeuer().Requeue, h.requeuer().Release} {
			errs := do(t.context(), act("retry"), store.RowRevision{Number: r.Number, Revision: r.Revision + 1})
			if len(errs) != 1 || !errors.Is(errs[0], semel.ErrChanged) {
				t.Errorf("with another revision: %v", errs)
			}
		}
		if err := errors.Join(h.requeuer().Release(t.context(), act("release"), r.Seen())...); !errors.Is(err, semel.ErrState) {
			t.Errorf("a release of a parked row: %v", err)
		}
		t.must(errors.Join(h.inbox().Discard(t.context(), act("discard"), r.Seen())...))
		if err := errors.Join(h.requeuer().Requeue(t.context(), act("retry"), h.number(r.Number).Seen())...); !errors.Is(err, semel.ErrState) {
			t.Errorf("a retry of a discarded row: %v", err)
		}
		h.wantActs(r.Number, "discard done")
	})
}

func (h *fixture[Tx]) requeuer() admin.Requeuer { return h.Store.(admin.Requeuer) }

// works claims a row that is due, and lets its message take effect.
func (h *fixture[Tx]) works(number int64) {
	h.t.Helper()
	got, err := h.leases().Claim(h.t.context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 10, Lease: long})
	h.t.must(err)
	if len(got) != 1 || got[0].Number != number || got[0].Suspect {
		h.t.Fatalf("claimed %+v, want row %d", got, number)
	}
	m := store.Mark{Scope: h.mark(got[0].Row.Key.ID).Scope, ID: []byte(got[0].Row.Key.ID), Fingerprint: got[0].Row.Fingerprint, As: store.Applied, Claim: got[0].Claim}
	b, v := h.begin(m)
	h.wantKinds(v, fresh)
	h.t.must(h.Effect(h.t.context(), b.Tx(0), got[0].Row.Key.ID))
	h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: got[0].Claim, Event: store.RowCompleted, Ran: true}}})
	if r := h.number(number); r.State != store.StateCompleted {
		h.t.Errorf("the row is %+v", r)
	}
}

// refusals are the laws of acts that come too late.
func (s suite[Tx]) refusals(t *T) {
	t.Run("an_act_on_a_changed_row_does_nothing",
		"An act that names an old revision, or a row that is not there, is refused as changed and leaves no trace.",
		func(t *T) {
			h := s.opened(t)
			r := h.park("a")
			for _, at := range [][2]int64{{r.Number, r.Revision + 1}, {r.Number + 1, r.Revision}, {-1, 1}} {
				if err := errors.Join(h.inbox().Discard(t.context(), act("discard"), store.RowRevision{Number: at[0], Revision: at[1]})...); !errors.Is(err, semel.ErrChanged) {
					t.Errorf("discard says %v, want ErrChanged", err)
				}
			}
			h.wantActs(0)
		})
	t.Run("a_closed_row_stays_closed",
		"A row that is discarded or completed takes no further act.",
		func(t *T) {
			h := s.opened(t)
			r := h.park("a")
			t.must(errors.Join(h.inbox().Discard(t.context(), act("discard"), r.Seen())...))
			r = h.row("a", false)
			if err := errors.Join(h.inbox().Discard(t.context(), act("discard"), r.Seen())...); !errors.Is(err, semel.ErrState) {
				t.Errorf("a second discard says %v, want ErrState", err)
			}
			h.wantActs(r.Number, "discard done")
		})
}

// records are the laws of what is kept of acts.
func (s suite[Tx]) records(t *T) {
	t.Run("acts_are_listed_oldest_first",
		"Acts are told in the order in which they were done, of one row or of all, up to a limit.",
		func(t *T) {
			h := s.opened(t)
			a, b, c := h.park("a"), h.park("b"), h.park("c")
			for _, r := range []store.StoredRow{b, c, a} {
				t.must(errors.Join(h.inbox().Discard(t.context(), act("discard of "+r.Key.ID), r.Seen())...))
			}
			h.wantActs(0, "discard of b done", "discard of c done", "discard of a done")
			h.wantActs(b.Number, "discard of b done")
			acts, err := h.inbox().Acts(t.context(), 0, 2)
			t.must(err)
			if len(acts) != 2 {
				t.Errorf("%d acts with a limit of 2", len(acts))
			}
		})
}
