package storetest

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/steplimit"
	"github.com/semel-go/semel/store"
)

// starts records that a call begins under a valid claim.
func (h *fixture[Tx]) starts(c store.Claim, lease time.Duration) store.CallStarted {
	h.t.Helper()
	got, err := h.Store.(store.Leases).StartCalls(h.t.context(), []store.Claim{c}, lease)
	h.t.must(err)
	if len(got) != 1 {
		h.t.Fatalf("%d answers to one StartCalls with one claim", len(got))
	}
	return got[0]
}

// endsClaim ends a claim, and fails the case if the claim is not valid.
func (h *fixture[Tx]) endsClaim(e store.ClaimEnding) {
	h.t.Helper()
	lost, err := h.leases().End(h.t.context(), []store.ClaimEnding{e})
	h.t.must(err)
	if len(lost) != 0 {
		h.t.Fatal("the claim is lost")
	}
}

// wantCalls checks how many calls the row records as started and as finished.
func (h *fixture[Tx]) wantCalls(number int64, started, finished int) store.StoredRow {
	h.t.Helper()
	r := h.number(number)
	if r.CallsStarted != started || r.CallsFinished != finished || r.CalledAt.IsZero() != (started == 0) {
		h.t.Errorf("the row has %d started calls and %d finished calls, the first at %v; want %d and %d", r.CallsStarted, r.CallsFinished, r.CalledAt, started, finished)
	}
	return r
}

// testCalls tests what rows record about calls of other systems.
func (s suite[Tx]) testCalls(t *T) {
	s.run(t, "E3_a_call_is_remembered_before_it_is_made",
		"A worker that claims a row after a process died during a call learns that the outcome is unknown, and when the first call began.", func(t *T, h *fixture[Tx]) {
			n := h.receive("a", 0, nil).Number
			first := h.takes(n, brief)[0]
			if got := h.starts(first.Claim, brief); !got.Stands || got.Started != 1 || got.Finished != 0 || got.Unknown() || got.Since < 0 || got.Since > long {
				t.Errorf("the first start answers %+v", got)
			}
			since := h.wantCalls(n, 1, 0).CalledAt
			next := h.takesAgain(n)
			if got := h.starts(next.Claim, long); !got.Stands || got.Started != 2 || !got.Unknown() || got.Since <= 0 {
				t.Errorf("the second start answers %+v", got)
			}
			if r := h.wantCalls(n, 2, 0); !r.CalledAt.Equal(since) || !r.UnknownOutcome() {
				t.Errorf("the first call is at %v, and was at %v", r.CalledAt, since)
			}
			if h.starts(first.Claim, long).Stands {
				t.Error("a lost claim begins a call")
			}
			h.wantCalls(n, 2, 0)
		})
	s.run(t, "E3_a_repeated_start_counts_once", "A start whose answer was lost and that is repeated is counted once.", func(t *T, h *fixture[Tx]) {
		n := h.receive("a", 0, nil).Number
		c := h.takes(n, long)[0]
		for range 3 {
			if got := h.starts(c.Claim, long); got.Started != 1 || got.Unknown() {
				t.Errorf("%+v", got)
			}
		}
		h.wantCalls(n, 1, 0)
	})
	s.run(t, "law_5_each_of_several_starts_is_separate",
		"When several claims begin calls together, the valid claims do, in order, and their leases are extended.", func(t *T, h *fixture[Tx]) {
			a, b := h.receive("a", 0, nil).Number, h.receive("b", 0, nil).Number
			one, two := h.takes(a, long)[0], h.takes(b, long)[0]
			before := h.number(b).LockedUntil
			got, err := h.Store.(store.Leases).StartCalls(t.context(), []store.Claim{two.Claim, {Number: a, Token: one.Token + 1}, {Number: a}, one.Claim}, 3*long)
			t.must(err)
			if len(got) != 4 || !got[0].Stands || got[1] != (store.CallStarted{}) || got[2] != (store.CallStarted{}) || !got[3].Stands {
				t.Errorf("%+v", got)
			}
			if r := h.number(b); r.LockedUntil.Sub(before) < long {
				t.Errorf("the lease ends at %v, and did at %v", r.LockedUntil, before)
			}
		})
	for o, want := range map[store.CallOutcome][2]int{
		store.CallNone: {2, 0}, store.CallNotMade: {1, 0}, store.CallUnknown: {2, 0}, store.CallFailed: {2, 1}, store.CallDecided: {2, 2},
	} {
		s.run(t, "E3_the_end_of_a_claim_settles_calls/"+o.String(),
			"A failed call settles only itself; CallDecided settles all calls of the row; CallNotMade takes its start back.", func(t *T, h *fixture[Tx]) {
				n := h.receive("a", 0, nil).Number
				first := h.takes(n, long)[0]
				h.starts(first.Claim, long)
				h.endsClaim(store.ClaimEnding{Claim: first.Claim, State: store.StateFailedRetryable, Call: store.CallUnknown, Ran: true})
				h.wantCalls(n, 1, 0)
				second := h.takes(n, long)[0]
				h.starts(second.Claim, long)
				h.endsClaim(store.ClaimEnding{Claim: second.Claim, State: store.StateFailedRetryable, Call: o, Ran: true})
				h.wantCalls(n, want[0], want[1])
			})
	}
	s.run(t, "E3_a_call_that_was_not_made_leaves_nothing",
		"A start that is taken back, or an end without a start, leaves the row unchanged.", func(t *T, h *fixture[Tx]) {
			n := h.receive("a", 0, nil).Number
			for i, o := range []store.CallOutcome{store.CallNotMade, store.CallFailed, store.CallNotMade} {
				c := h.takes(n, long)[0]
				if i == 0 {
					h.starts(c.Claim, long)
				}
				h.endsClaim(store.ClaimEnding{Claim: c.Claim, State: store.StateReceived, Call: o})
				h.wantCalls(n, 0, 0)
			}
		})
}

// testResolutions tests how operators report the outcomes of calls whose outcome was unknown.
func (s suite[Tx]) testResolutions(t *T) {
	s.run(t, "E3_a_call_resolved_as_done_completes_its_row",
		"If an operator resolves a call as done, the row is completed with its marker, and no copy takes effect.", func(t *T, h *fixture[Tx]) {
			r := h.unknownCall("a", store.StateParked)
			t.must(h.resolve(r, admin.ResolvedDone))
			if after := h.wantCalls(r.Number, 1, 1); after.State != store.StateCompleted || after.Revision == r.Revision {
				t.Errorf("the row is %+v", after)
			}
			h.wantOutcome("a", store.Applied)
			h.wantActs(r.Number, "resolve done")
			t.wantErr("a second time", h.resolve(h.number(r.Number), admin.ResolvedDone), semel.ErrState)
		})
	for _, state := range []store.RowState{store.StateParked, store.StateFailedRetryable, store.StateDeadLettered} {
		s.run(t, "E3_a_call_resolved_as_not_done_is_due/"+state.String(),
			"If an operator resolves the calls of a row as not done, the row is due at once, as if no call had been made.", func(t *T, h *fixture[Tx]) {
				r := h.unknownCall("a", state)
				t.must(h.resolve(r, admin.ResolvedNotDone))
				h.wantCalls(r.Number, 0, 0)
				h.wantOutcome("a", store.Waiting)
				h.wantActs(r.Number, "resolve not-done")
				h.works(r.Number)
			})
	}
	s.run(t, "E3_a_call_resolved_as_not_done_is_due/after_one_of_which_it_was_known",
		"A row with one known and one unknown call that is resolved as not done is due as if no call had been made.", func(t *T, h *fixture[Tx]) {
			n := h.callKnown("a", store.StateFailedRetryable, 0)
			c := h.takes(n, long)[0]
			h.starts(c.Claim, long)
			h.endsClaim(store.ClaimEnding{Claim: c.Claim, State: store.StateParked, Reason: semel.ReasonOutcomeUnknown, Call: store.CallUnknown})
			t.must(h.resolve(h.number(n), admin.ResolvedNotDone))
			h.wantCalls(n, 0, 0)
		})
	s.run(t, "E3_trap_T77_a_retry_with_an_unknown_outcome_is_refused",
		"A row that is parked because its outcome is unknown cannot be retried before an operator resolves the outcome.", func(t *T, h *fixture[Tx]) {
			r := h.unknownCall("a", store.StateParked)
			t.wantErr("a blind retry", h.retry(r.Seen()), semel.ErrState)
			if after := h.number(r.Number); after.State != store.StateParked || after.Revision != r.Revision {
				t.Errorf("the row is %+v", after)
			}
			h.wantActs(r.Number)
		})
	s.run(t, "E3_a_known_outcome_cannot_be_resolved",
		"Resolve refuses a row that is claimed, has changed, or has no unknown outcome, and refuses an invalid resolution.", func(t *T, h *fixture[Tx]) {
			known, called := h.park("known"), h.number(h.callKnown("called", store.StateParked, long))
			claimed := h.receive("claimed", 0, nil).Number
			h.starts(h.takes(claimed, long)[0].Claim, long)
			unknownCall := h.unknownCall("a", store.StateParked)
			older := unknownCall
			older.Revision--
			for _, refused := range []struct {
				row  store.StoredRow
				with admin.Resolution
				err  error
			}{
				{known, admin.ResolvedDone, semel.ErrState}, {called, admin.ResolvedDone, semel.ErrState}, {h.number(claimed), admin.ResolvedNotDone, semel.ErrState},
				{older, admin.ResolvedDone, semel.ErrChanged}, {unknownCall, 0, nil},
			} {
				if err := h.resolve(refused.row, refused.with); err == nil || refused.err != nil && !errors.Is(err, refused.err) {
					t.Errorf("%v of row %d returned %v, want %v", refused.with, refused.row.Number, err, refused.err)
				}
			}
			h.wantActs(0)
		})
}

func (h *fixture[Tx]) resolve(r store.StoredRow, as admin.Resolution) error {
	return errors.Join(h.Store.(admin.Resolver).Resolve(h.t.context(), as, act("resolve"), r.Seen())...)
}

// unknownCall returns a row whose only call has an unknown outcome. The claim of the row ended with the given state.
func (h *fixture[Tx]) unknownCall(id string, state store.RowState) store.StoredRow {
	h.t.Helper()
	n := h.receive(id, 0, nil).Number
	c := h.takes(n, long)[0]
	h.starts(c.Claim, long)
	h.endsClaim(store.ClaimEnding{Claim: c.Claim, State: state, After: long, Reason: semel.ReasonOutcomeUnknown, Call: store.CallUnknown})
	return h.number(n)
}

// callKnown returns the number of a row whose only call is known to have failed. The claim of the row ended with the
// given state.
func (h *fixture[Tx]) callKnown(id string, state store.RowState, after time.Duration) int64 {
	h.t.Helper()
	n := h.receive(id, 0, nil).Number
	c := h.takes(n, long)[0]
	h.starts(c.Claim, long)
	h.endsClaim(store.ClaimEnding{Claim: c.Claim, State: state, After: after, Reason: semel.ReasonExhausted, Call: store.CallFailed})
	return n
}

// takesAgain waits until the short lease of a row has expired, and then claims the row again.
func (h *fixture[Tx]) takesAgain(number int64) store.Claimed {
	h.t.Helper()
	for ctx := h.t.context(); ctx.Err() == nil; time.Sleep(brief) {
		if got := h.takes(number, long); len(got) == 1 {
			return got[0]
		}
	}
	h.t.Fatalf("row %d cannot be claimed again", number)
	return store.Claimed{}
}

// manyBytes returns n bytes: the values 0 to 255 in order, repeated.
func manyBytes(n int) []byte {
	all := make([]byte, n)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

// sameSteps reports whether two lists of steps are equal. A step without an output differs from a step with an
// empty output.
func sameSteps(x, y []store.StepDone) bool {
	return slices.EqualFunc(x, y, func(a, b store.StepDone) bool {
		return a.Name == b.Name && bytes.Equal(a.Output, b.Output) && (a.Output == nil) == (b.Output == nil)
	})
}

// claimNext claims the only row that can be claimed.
func (h *fixture[Tx]) claimNext() store.Claimed {
	h.t.Helper()
	got, err := h.leases().Claim(h.t.context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 10, Lease: long})
	h.t.must(err)
	if len(got) != 1 {
		h.t.Fatalf("%d rows are claimed, want 1", len(got))
	}
	return got[0]
}

func (s suite[Tx]) testSteps(t *T) {
	done := []store.StepDone{{Name: "reserve", Output: manyBytes(steplimit.Output)}, {Name: "zahlen, \"ü\"", Output: nil}, {Name: "ship", Output: []byte{}}}
	s.run(t, "C11_a_step_is_written_with_its_effect",
		"A step, the state of its row and its effect commit together and become visible only then; the next claim returns all steps with the full bytes of their outputs.", func(t *T, h *fixture[Tx]) {
			c := h.claimed("a")[0]
			for n := range done {
				if !sameSteps(c.Row.Steps, done[:n]) {
					t.Errorf("after %d steps the claim has %d steps", n, len(c.Row.Steps))
				}
				b, v := h.begin(h.asking(c))
				h.wantKinds(v, fresh)
				h.t.must(h.Effect(t.context(), b.Tx(0), "a"))
				if r := h.number(c.Number); !sameSteps(r.Steps, done[:n]) {
					t.Errorf("step %d is visible before its commit", n)
				}
				h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: c.Claim, State: store.StateReceived, Stepped: true, Ran: true, Steps: done[:n+1]}}})
				h.wantCount("a", n+1)
				if r := h.number(c.Number); r.State != store.StateReceived || !sameSteps(r.Steps, done[:n+1]) || !r.LockedUntil.IsZero() {
					t.Errorf("after step %d the row is %s with %d steps", n, r.State, len(r.Steps))
				}
				h.wantOutcome("a", store.Waiting)
				c = h.claimNext()
			}
			b, v := h.begin(h.asking(c))
			h.wantKinds(v, fresh)
			h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: c.Claim, State: store.StateCompleted, Ran: true}}})
			if r := h.number(c.Number); r.State != store.StateCompleted || !sameSteps(r.Steps, done) {
				t.Errorf("the row is %s with %d steps", r.State, len(r.Steps))
			}
			h.wantOutcome("a", store.Applied)
		})
	s.run(t, "C11_a_step_that_is_rolled_back_is_not_done", "A rollback leaves the steps of a row unchanged.", func(t *T, h *fixture[Tx]) {
		c := h.claimed("a")[0]
		b, _ := h.begin(h.asking(c))
		h.t.must(h.Effect(t.context(), b.Tx(0), "a"))
		b.Rollback(t.context())
		if r := h.number(c.Number); len(r.Steps) != 0 || r.State != store.StateInProgress {
			t.Errorf("%+v", r)
		}
		h.wantCount("a", 0)
	})
	s.run(t, "law_5_a_stale_token_ends_no_step",
		"A step under a lost claim commits nothing, inside or outside of a batch.", func(t *T, h *fixture[Tx]) {
			all := h.claimed("a", "b")
			stepped := func(c store.Claim, mark int) store.ClaimEnding {
				return store.ClaimEnding{Claim: c, Mark: mark, State: store.StateReceived, Stepped: true, Ran: true, Steps: done[:1]}
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
				t.Errorf("the step under the valid claim: %+v", r)
			}
			if r := h.number(all[1].Number); len(r.Steps) != 0 || r.State != store.StateInProgress {
				t.Errorf("%+v", r)
			}
		})
	s.run(t, "C11_each_step_resets_the_attempts",
		"A committed step resets attempts, starts and the last error of its row.", func(t *T, h *fixture[Tx]) {
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
					t.Errorf("after %s: %d attempts, %d starts, %q", e.State, r.Attempts, r.Started, r.LastError)
				}
			}
			end(store.ClaimEnding{State: store.StateFailedRetryable, Error: "why"}, 1)
			c = h.claimNext()
			end(store.ClaimEnding{State: store.StateReceived, Stepped: true, Steps: done[:1]}, 0)
			c = h.claimNext()
			end(store.ClaimEnding{State: store.StateFailedRetryable, Error: "why"}, 1)
			c = h.claimNext()
			end(store.ClaimEnding{State: store.StateCompleted, Steps: done[:2]}, 2)
			if r := h.number(c.Number); !sameSteps(r.Steps, done[:2]) {
				t.Errorf("%d steps", len(r.Steps))
			}
		})
	s.run(t, "C11_steps_outlive_failures_and_retries",
		"A failure, a release, a park and an operator's retry leave the steps of a row unchanged.", func(t *T, h *fixture[Tx]) {
			c := h.claimed("a")[0]
			for _, e := range []store.ClaimEnding{{State: store.StateReceived, Stepped: true, Steps: done[:2]}, {State: store.StateFailedRetryable},
				{State: store.StateReceived}, {State: store.StateParked}} {
				e.Claim = c.Claim
				lost, err := h.leases().End(t.context(), []store.ClaimEnding{e})
				if err != nil || len(lost) > 0 {
					t.Fatalf("%v, %v", lost, err)
				}
				if e.State == store.StateParked {
					r := h.number(c.Number)
					h.t.must(errors.Join(h.Store.(admin.Requeuer).Requeue(t.context(), store.Act{Verb: "retry", Who: "ann", Why: "again"}, r.Seen())...))
				}
				if c = h.claimNext(); !sameSteps(c.Row.Steps, done[:2]) {
					t.Errorf("after %s there are %d steps", e.State, len(c.Row.Steps))
				}
			}
			h.t.must(func() error {
				_, err := h.leases().End(t.context(), []store.ClaimEnding{{Claim: c.Claim, State: store.StateParked, Reason: reasonname.Steps}})
				return err
			}())
		})
}
