package storetest

import (
	"errors"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/store"
)

// twins parks the first content of an identity, and a second content as a conflict. The results are the two rows.
func (h *fixture[Tx]) twins(id string) (first, second store.StoredRow) {
	h.t.Helper()
	h.park(id)
	h.conflict(id, 2)
	return h.rowOfIdentity(id, false), h.rowOfIdentity(id, true)
}

// retries retries a row, so that it can be claimed now, and returns the changed row.
func (h *fixture[Tx]) retries(r store.StoredRow) store.StoredRow {
	h.t.Helper()
	h.t.must(h.retry(r.Seen()))
	return h.number(r.Number)
}

func (h *fixture[Tx]) discards(r store.StoredRow) store.StoredRow {
	h.t.Helper()
	h.t.must(h.discard(r.Seen()))
	return h.number(r.Number)
}

// testMarkerOwner tests law 16: at any time the marker of an identity belongs to one of its rows, and closing
// another row does not change the marker.
func (s suite[Tx]) testMarkerOwner(t *T) {
	s.run(t, "law_16_a_discard_of_the_first_row_leaves_the_marker_of_a_conflict_that_waits",
		"The marker belongs to one row: closing the first content does not end a conflict that an operator has retried, which then takes effect once.", func(t *T, h *fixture[Tx]) {
			first, second := h.twins("a")
			second = h.retries(second)
			h.discards(h.number(first.Number))
			h.wantKinds(h.asks(h.contentMark("a", 2)), already(store.Waiting))
			h.works(second.Number)
			h.wantKinds(h.asks(h.contentMark("a", 2)), already(store.Applied))
			h.wantKinds(h.asks(h.contentMark("a", 1)), conflict)
			h.wantCount("a", 1)
		})
	t.Run("law_16_a_discard_of_a_conflict_that_waits_gives_the_marker_back",
		"After a retried conflict is closed, the marker agrees with the row of the first content, which can be retried.", func(t *T) {
			for _, again := range []bool{false, true} { // false: the conflict waits; true: it was parked again
				h := s.open(t)
				first, second := h.twins("a")
				second = h.retries(second)
				if again {
					c := h.claimNext()
					h.wantLost(h.leases().End(t.context(), []store.ClaimEnding{{Claim: c.Claim, State: store.StateParked, Reason: semel.ReasonPermanent, Ran: true}}))
					second = h.number(second.Number)
				}
				h.discards(second)
				h.wantKinds(h.asks(h.contentMark("a", 1)), already(store.Parked))
				h.wantKinds(h.asks(h.contentMark("a", 2)), conflict)
				h.retries(h.number(first.Number))
				h.works(first.Number)
				h.wantKinds(h.asks(h.contentMark("a", 1)), already(store.Applied))
				h.wantCount("a", 1)
			}
		})
	s.run(t, "law_16_of_two_rows_with_one_content_the_marker_belongs_to_one",
		"A copy of the first content that arrives while a conflict has the marker takes effect once, and the closed row of the first content agrees with it.", func(t *T, h *fixture[Tx]) {
			first, second := h.twins("a")
			h.discards(first)
			second = h.retries(second)
			h.conflict("a", 1)
			h.discards(second)
			for _, r := range h.list(store.RowFilter{IDs: []string{"a"}, States: []store.RowState{store.StateParked}}) {
				h.works(h.retries(r).Number)
			}
			h.wantKinds(h.asks(h.contentMark("a", 1)), already(store.Applied))
			h.wantCount("a", 1)
			if h.Agrees != nil {
				h.Agrees(t)
			}
		})
	s.run(t, "law_16_a_conflict_that_was_parked_again_keeps_the_marker",
		"Closing the first content leaves the marker with the conflict that has it, and the conflict can be retried.", func(t *T, h *fixture[Tx]) {
			first, second := h.twins("a")
			h.retries(second)
			c := h.claimNext()
			h.wantLost(h.leases().End(t.context(), []store.ClaimEnding{{Claim: c.Claim, State: store.StateParked, Reason: semel.ReasonPermanent, Ran: true}}))
			h.discards(h.number(first.Number))
			h.wantKinds(h.asks(h.contentMark("a", 2)), already(store.Parked))
			h.retries(h.number(second.Number))
			h.works(second.Number)
			h.wantCount("a", 1)
		})
	s.run(t, "law_16_a_refusal_says_which_content_prevents_a_retry",
		"A retry that is refused because another content waits gets a different error than one that is refused because another content is applied.", func(t *T, h *fixture[Tx]) {
			first, second := h.twins("a")
			h.retries(second)
			err := h.retry(h.number(first.Number).Seen())
			if !errors.Is(err, semel.ErrConflict) || !errors.Is(err, admin.ErrOpen) {
				t.Errorf("while another waits: %v, want ErrOpen", err)
			}
			h.works(second.Number)
			err = h.retry(h.number(first.Number).Seen())
			if !errors.Is(err, semel.ErrConflict) || errors.Is(err, admin.ErrOpen) {
				t.Errorf("when another is applied: %v, want ErrConflict alone", err)
			}
		})
}

// testReopened tests discarded rows that an operator has reopened.
func (s suite[Tx]) testReopened(t *T) {
	reopen := func(h *fixture[Tx], r store.StoredRow) error {
		return errors.Join(h.requeuer().Reopen(t.context(), act("reopen"), r.Seen())...)
	}
	s.run(t, "G5_a_discard_is_taken_back",
		"A reopened row is parked again with its marker and a record, keeps its reason, and can be retried.", func(t *T, h *fixture[Tx]) {
			r := h.discards(h.park("a"))
			t.must(reopen(h, r))
			after := h.number(r.Number)
			if after.State != store.StateParked || after.Reason != semel.ReasonPermanent || after.Revision == r.Revision {
				t.Errorf("the reopened row is %+v", after)
			}
			h.wantOutcome("a", store.Parked)
			h.wantActs(r.Number, "discard done", "reopen done")
			h.retries(after)
			h.works(r.Number)
			h.wantOutcome("a", store.Applied)
			h.wantCount("a", 1)
		})
	s.run(t, "G5_a_row_discarded_by_its_handler_or_while_waiting_can_be_reopened",
		"A reopened row that was discarded while it waited, or by its handler, is parked with the reason reopened.", func(t *T, h *fixture[Tx]) {
			waited := h.discards(h.receive("a", long, []byte("a")))
			c := h.claimed("b")[0]
			h.wantLost(h.leases().End(t.context(), []store.ClaimEnding{{Claim: c.Claim, State: store.StateDiscarded, Reason: semel.ReasonGap, Ran: true}}))
			for id, r := range map[string]store.StoredRow{"a": waited, "b": h.number(c.Number)} {
				t.must(reopen(h, r))
				if after := h.number(r.Number); after.State != store.StateParked || after.Reason != admin.ReasonReopened {
					t.Errorf("the reopened row of %s is %+v", id, after)
				}
				h.wantOutcome(id, store.Parked)
			}
		})
	s.run(t, "G5_a_row_that_took_effect_or_was_not_discarded_is_not_reopened",
		"Reopen refuses a row that is not discarded or has changed, and a row whose identity has another content applied or waiting.", func(t *T, h *fixture[Tx]) {
			r := h.park("a")
			t.wantErr("a parked row", reopen(h, r), semel.ErrState)
			closed := h.discards(r)
			t.wantErr("with an outdated revision", reopen(h, r), semel.ErrChanged)
			h.conflict("a", 2)
			h.retries(h.rowOfIdentity("a", true))
			t.wantErr("while another content waits", reopen(h, closed), admin.ErrOpen)
			h.works(h.rowOfIdentity("a", true).Number)
			if err := reopen(h, closed); !errors.Is(err, semel.ErrConflict) || errors.Is(err, admin.ErrOpen) {
				t.Errorf("when another content is applied: %v, want ErrConflict", err)
			}
			if after := h.number(closed.Number); after.State != store.StateDiscarded || after.Revision != closed.Revision {
				t.Errorf("it is %+v", after)
			}
			h.wantActs(closed.Number, "discard done")
		})
	s.run(t, "law_16_a_conflict_that_is_reopened_leaves_the_marker",
		"A reopened conflict that never had the marker is parked again, and the first content keeps the marker.", func(t *T, h *fixture[Tx]) {
			_, second := h.twins("a")
			second = h.discards(second)
			t.must(reopen(h, second))
			if after := h.number(second.Number); after.State != store.StateParked || after.Reason != semel.ReasonConflict {
				t.Errorf("the reopened row is %+v", after)
			}
			h.wantOutcome("a", store.Parked)
		})
	if !s.h.Can.Calls {
		return
	}
	s.run(t, "trap_T46_a_row_with_an_unknown_outcome_is_not_reopened",
		"A discard of a row whose call has an unknown outcome cannot be taken back.", func(t *T, h *fixture[Tx]) {
			r := h.discards(h.unknownCall("a", store.StateParked))
			t.wantErr("a reopening", reopen(h, r), semel.ErrState)
		})
}

// testConcurrentActs tests operators who change the rows of one identity at the same time.
func (s suite[Tx]) testConcurrentActs(t *T) {
	s.run(t, "trap_144_of_twenty_concurrent_retries_one_succeeds",
		"If many operators retry a row at once, one succeeds and the others get ErrChanged; the message takes effect once.", func(t *T, h *fixture[Tx]) {
			r := h.park("a")
			var mu sync.Mutex
			done, changed := 0, 0
			runConcurrently(20, func(int) {
				err := h.retry(r.Seen())
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
				t.Errorf("%d succeeded and %d got ErrChanged, want 1 and 19", done, changed)
			}
			h.works(r.Number)
			h.wantCount("a", 1)
			h.wantActs(r.Number, "retry done")
		})
	t.Run("trap_144_of_a_concurrent_retry_and_discard_one_succeeds", "Of a concurrent retry and discard exactly one succeeds.", func(t *T) {
		for range 10 {
			h := s.open(t)
			r := h.park("a")
			var retried, discarded error
			runConcurrently(2, func(i int) {
				if i == 0 {
					discarded = h.discard(r.Seen())
				} else {
					retried = h.retry(r.Seen())
				}
			})
			late, want := retried, store.StateDiscarded
			if discarded != nil {
				late, want = discarded, store.StateFailedRetryable
			}
			if (retried == nil) == (discarded == nil) || !errors.Is(late, semel.ErrChanged) {
				t.Errorf("the retry returned %v, the discard %v", retried, discarded)
			}
			if got := h.rowOfIdentity("a", false).State; got != want {
				t.Errorf("the row is %s, want %s", got, want)
			}
		}
	})
	s.run(t, "a_conflict_is_not_retried_while_the_identity_is_applied",
		"A retry of a conflict is refused while another content is applied, because it would apply a second content; nothing is changed.", func(t *T, h *fixture[Tx]) {
			h.deliver(h.contentMark("a", 1))
			h.conflict("a", 2)
			before := h.rowOfIdentity("a", true)
			t.wantErr("a retry", h.retry(before.Seen()), semel.ErrConflict)
			if after := h.rowOfIdentity("a", true); after.Revision != before.Revision || after.State != store.StateParked {
				t.Errorf("the row is %+v", after)
			}
		})
}

// partlyApplied returns functions by name. Each function parks a row whose message took effect in part, or may have
// taken effect.
func (s suite[Tx]) partlyApplied() map[string]func(h *fixture[Tx], id string) store.StoredRow {
	all := map[string]func(h *fixture[Tx], id string) store.StoredRow{}
	if s.h.Can.Calls {
		all["a call of it has an unknown outcome"] = func(h *fixture[Tx], id string) store.StoredRow {
			return h.unknownCall(id, store.StateParked)
		}
	}
	if s.h.Can.Steps {
		all["a step of it took effect"] = func(h *fixture[Tx], id string) store.StoredRow {
			c := h.claimed(id)[0]
			h.endsClaim(store.ClaimEnding{Claim: c.Claim, State: store.StateReceived, Stepped: true, Ran: true, Steps: []store.StepDone{{Name: "charge"}}})
			c = h.claimNext()
			h.endsClaim(store.ClaimEnding{Claim: c.Claim, State: store.StateParked, Reason: semel.ReasonPermanent, Ran: true})
			return h.number(c.Number)
		}
	}
	return all
}

// testBesideOpenRow tests rows that must not run while another row of their identity is open.
func (s suite[Tx]) testBesideOpenRow(t *T) {
	for name, half := range s.partlyApplied() {
		s.run(t, "law_16_a_conflict_does_not_run_if_of_the_first_content/"+name,
			"A conflict cannot be retried before the first content, which may have taken effect in part, is closed; and never if steps of it took effect.", func(t *T, h *fixture[Tx]) {
				first := half(h, "a")
				h.conflict("a", 2)
				second := h.rowOfIdentity("a", true)
				t.wantErr("a retry", h.retry(second.Seen()), admin.ErrOpen)
				if after := h.number(second.Number); after.Revision != second.Revision {
					t.Errorf("it is %+v", after)
				}
				h.wantActs(second.Number)
				first = h.discards(first)
				if len(first.Steps) > 0 { // a discard does not undo the steps that were committed
					t.wantErr("a retry after steps of a discarded row", h.retry(second.Seen()), admin.ErrOpen)
					return
				}
				h.retries(second)
				h.works(second.Number)
				h.wantCount("a", 1)
			})
	}
	if !s.h.Can.Streams {
		return
	}
	for name, come := range map[string]func(h *fixture[Tx]){
		"comes":      func(h *fixture[Tx]) { h.next("a", 1) },
		"is_skipped": func(h *fixture[Tx]) { h.t.must(h.streams().SkipTo(h.t.context(), h.storedStream("a"), 1, act("skip"))) },
	} {
		for _, applied := range []bool{true, false} {
			state := "applied"
			if !applied {
				state = "waiting"
			}
			s.run(t, "law_16_a_row_parked_for_a_gap_stays_parked_if_a_conflict_is_"+state+"_when_the_version_"+name,
				"A row is freed together with its marker or not at all, so no row is due while its marker says that another content is applied.", func(t *T, h *fixture[Tx]) {
					r := h.blocks("a", 2, 0)
					c := h.takes(r.Number, long)[0]
					h.endsClaim(store.ClaimEnding{Claim: c.Claim, State: store.StateParked, Reason: semel.ReasonGap})
					h.conflict("a2", 99)
					second := h.retries(h.rowOfIdentity("a2", true))
					if applied {
						h.works(second.Number)
					}
					come(h)
					after := h.number(r.Number)
					if after.State != store.StateParked || after.Reason != semel.ReasonConflict {
						t.Errorf("the row is %s for %q", after.State, after.Reason)
					}
					if got := h.takes(r.Number, long); len(got) != 0 {
						t.Errorf("claimed %+v", got)
					}
					if !applied {
						h.works(second.Number)
					}
					h.wantKinds(h.asks(h.contentMark("a2", 99)), already(store.Applied))
					h.wantCount("a2", 1)
				})
		}
	}
}

// endsGap claims a row that has waited for an earlier version, and parks it because the version is missing.
func (h *fixture[Tx]) endsGap(number int64) store.StoredRow {
	h.t.Helper()
	c := h.takes(number, long)
	if len(c) != 1 {
		h.t.Fatalf("row %d is not due", number)
	}
	place := versions.Position{Stream: []byte("a"), Number: 3, Start: 1}
	h.wantLost(h.leases().End(h.t.context(), []store.ClaimEnding{{Claim: c[0].Claim, State: store.StateBlocked, Reason: semel.ReasonGap, Version: place}}))
	if c = h.takes(number, long); len(c) != 1 {
		h.t.Fatalf("row %d is not due after it was blocked", number)
	}
	h.wantLost(h.leases().End(h.t.context(), []store.ClaimEnding{{Claim: c[0].Claim, State: store.StateParked, Reason: semel.ReasonGap}}))
	return h.number(number)
}

// testGapTwins tests an identity that has two rows with the same content: the second row was written because a copy of
// the first content arrived while the marker belonged to a conflict.
func (s suite[Tx]) testGapTwins(t *T) {
	for name, prepare := range map[string]func(h *fixture[Tx], copied store.StoredRow){
		"both_parked_for_it": func(h *fixture[Tx], copied store.StoredRow) { h.endsGap(h.retries(copied).Number) },
		"the_copy_due":       func(h *fixture[Tx], copied store.StoredRow) { h.retries(copied) },
	} {
		s.run(t, "law_16_one_of_two_rows_of_one_content_is_freed_from_a_gap/"+name,
			"Of two rows with one content at most one is freed, and that row has the marker.", func(t *T, h *fixture[Tx]) {
				h.next("a", 1)
				first := h.endsGap(h.blocks("a", 3, 0).Number)
				h.conflict("a3", 2)
				other := h.retries(h.rowOfIdentity("a3", true))
				h.conflict("a3", 1)
				var copied store.StoredRow
				for _, r := range h.list(store.RowFilter{IDs: []string{"a3"}}) {
					if r.Conflict && r.Fingerprint == first.Fingerprint {
						copied = r
					}
				}
				h.discards(other)
				prepare(h, copied)
				h.next("a", 2)
				due := int64(0)
				for _, r := range h.list(store.RowFilter{IDs: []string{"a3"}}) {
					if r.State.Outcome() != store.Waiting {
						continue
					}
					if due != 0 {
						t.Fatalf("rows %d and %d of one identity are due", due, r.Number)
					}
					due = r.Number
				}
				if due == 0 {
					return // an operator can retry either row
				}
				h.works(due)
				h.wantOutcome("a3", store.Applied)
				h.wantCount("a3", 1)
			})
	}
}
