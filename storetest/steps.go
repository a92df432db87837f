package storetest

import (
	"bytes"
	"errors"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// manyBytes are all bytes, over and over.
func manyBytes(n int) []byte {
	all := make([]byte, n)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

// sameSteps reports whether two lists of steps are equal; an output that is none is not an
// empty one.
func sameSteps(x, y []store.StepDone) bool {
	return slices.EqualFunc(x, y, func(a, b store.StepDone) bool {
		return a.Name == b.Name && bytes.Equal(a.Output, b.Output) && (a.Output == nil) == (b.Output == nil)
	})
}

// claimNext claims the only row that is due.
func (h *fixture[Tx]) claimNext() store.Claimed {
	h.t.Helper()
	got, err := h.leases().Claim(h.t.context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 10, Lease: long})
	h.t.must(err)
	if len(got) != 1 {
		h.t.Fatalf("%d rows are claimed, want 1", len(got))
	}
	return got[0]
}

// steps are the laws of steps.
func (s suite[Tx]) steps(t *T) {
	done := []store.StepDone{{Name: "reserve", Output: manyBytes(store.MaxStepOutput)}, {Name: "zahlen, \"ü\"", Output: nil}, {Name: "ship", Output: []byte{}}}
	t.Run("C11_a_step_is_written_with_its_effect", "The steps of a row, its state and the effect of a step change in one commit, and not before; the next claim is told of them, and of all bytes of their outputs.", func(t *T) {
		h := s.opened(t)
		c := h.claimed("a")[0]
		for n := range done {
			if !sameSteps(c.Row.Steps, done[:n]) {
				t.Errorf("after %d steps the claim tells of %d", n, len(c.Row.Steps))
			}
			b, v := h.begin(h.asking(c))
			h.wantKinds(v, fresh)
			h.t.must(h.Effect(t.context(), b.Tx(0), "a"))
			if r := h.number(c.Number); !sameSteps(r.Steps, done[:n]) {
				t.Errorf("before its commit step %d is written", n)
			}
			h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: c.Claim, Event: store.RowStepped, Ran: true, Steps: done[:n+1]}}})
			h.wantCount("a", n+1)
			if r := h.number(c.Number); r.State != store.StateReceived || !sameSteps(r.Steps, done[:n+1]) || !r.LockedUntil.IsZero() {
				t.Errorf("after step %d the row is %s with %d steps", n, r.State, len(r.Steps))
			}
			h.wantOutcome("a", store.Waiting)
			c = h.claimNext()
		}
		b, v := h.begin(h.asking(c))
		h.wantKinds(v, fresh)
		h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: c.Claim, Event: store.RowCompleted, Ran: true}}})
		if r := h.number(c.Number); r.State != store.StateCompleted || !sameSteps(r.Steps, done) {
			t.Errorf("the row is %s with %d steps", r.State, len(r.Steps))
		}
		h.wantOutcome("a", store.Applied)
	})
	t.Run("C11_a_step_that_is_rolled_back_is_not_done", "What does not commit leaves the steps of a row as they are.", func(t *T) {
		h := s.opened(t)
		c := h.claimed("a")[0]
		b, _ := h.begin(h.asking(c))
		h.t.must(h.Effect(t.context(), b.Tx(0), "a"))
		b.Rollback(t.context())
		if r := h.number(c.Number); len(r.Steps) != 0 || r.State != store.StateInProgress {
			t.Errorf("%+v", r)
		}
		h.wantCount("a", 0)
	})
	t.Run("law_5_a_stale_token_ends_no_step", "A step under a claim that is another's commits nothing, in a batch or outside of one.", func(t *T) {
		h := s.opened(t)
		all := h.claimed("a", "b")
		stepped := func(c store.Claim, mark int) store.ClaimEnding {
			return store.ClaimEnding{Claim: c, Mark: mark, Event: store.RowStepped, Ran: true, Steps: done[:1]}
		}
		stale := store.Claim{Number: all[1].Number, Token: store.NewToken()}
		b, _ := h.begin(h.asking(all[0]), h.asking(all[1]))
		h.t.must(h.Effect(t.context(), b.Tx(0), "a"))
		if r := b.Commit(t.context(), store.Ending{Claims: []store.ClaimEnding{stepped(all[0].Claim, 0), stepped(stale, 1)}}); r.Outcome != store.NotCommitted || r.Class != store.ClassClaimLost {
			t.Errorf("%+v", r)
		}
		h.wantCount("a", 0)
		lost, err := h.leases().End(t.context(), []store.ClaimEnding{stepped(stale, 0), stepped(all[0].Claim, 0)})
		if err != nil || !slices.Equal(lost, []int{0}) {
			t.Errorf("lost %v, %v", lost, err)
		}
		if r := h.number(all[0].Number); !sameSteps(r.Steps, done[:1]) || r.State != store.StateReceived {
			t.Errorf("the step of the claim that stands: %+v", r)
		}
		if r := h.number(all[1].Number); len(r.Steps) != 0 || r.State != store.StateInProgress {
			t.Errorf("%+v", r)
		}
	})
	t.Run("C11_attempts_begin_anew_with_each_step", "A step takes back the attempts before it, and leaves no start without an end.", func(t *T) {
		h := s.opened(t)
		c := h.claimed("a")[0]
		end := func(e store.ClaimEnding, attempts int) {
			t.Helper()
			e.Claim, e.Ran = c.Claim, true
			lost, err := h.leases().Start(t.context(), []store.Claim{c.Claim})
			if err != nil || len(lost) > 0 {
				t.Fatalf("%v, %v", lost, err)
			}
			lost, err = h.leases().End(t.context(), []store.ClaimEnding{e})
			if err != nil || len(lost) > 0 {
				t.Fatalf("%v, %v", lost, err)
			}
			if r := h.number(c.Number); r.Attempts != attempts || r.Started != 0 || r.LastError != "why" {
				t.Errorf("after %s: %d attempts, %d starts, %q", e.Event, r.Attempts, r.Started, r.LastError)
			}
		}
		end(store.ClaimEnding{Event: store.RowFailed, Error: "why"}, 1)
		c = h.claimNext()
		end(store.ClaimEnding{Event: store.RowStepped, Steps: done[:1]}, 0)
		c = h.claimNext()
		end(store.ClaimEnding{Event: store.RowFailed, Error: "why"}, 1)
		c = h.claimNext()
		end(store.ClaimEnding{Event: store.RowCompleted, Steps: done[:2]}, 2)
		if r := h.number(c.Number); !sameSteps(r.Steps, done[:2]) {
			t.Errorf("%d steps", len(r.Steps))
		}
	})
	t.Run("C11_steps_outlive_what_happens_between_them", "A failure, a release, parking and a person's retry leave the steps of a row as they are.", func(t *T) {
		h := s.opened(t)
		c := h.claimed("a")[0]
		for _, e := range []store.RowEvent{store.RowStepped, store.RowFailed, store.RowReleased, store.RowParked} {
			ending := store.ClaimEnding{Claim: c.Claim, Event: e}
			if e == store.RowStepped {
				ending.Steps = done[:2]
			}
			lost, err := h.leases().End(t.context(), []store.ClaimEnding{ending})
			if err != nil || len(lost) > 0 {
				t.Fatalf("%v, %v", lost, err)
			}
			if e == store.RowParked {
				r := h.number(c.Number)
				h.t.must(errors.Join(h.Store.(admin.Requeuer).Requeue(t.context(), store.Act{Verb: "retry", Who: "ann", Why: "again"}, r.Seen())...))
			}
			if c = h.claimNext(); !sameSteps(c.Row.Steps, done[:2]) {
				t.Errorf("after %s there are %d steps", e, len(c.Row.Steps))
			}
		}
		h.t.must(func() error {
			_, err := h.leases().End(t.context(), []store.ClaimEnding{{Claim: c.Claim, Event: store.RowParked, Reason: semel.ReasonSteps}})
			return err
		}())
	})
}
