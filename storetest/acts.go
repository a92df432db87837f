package storetest

import (
	"context"
	"errors"
	"strings"

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

// The methods retry, release and discard execute the operator's command with the same name on rows.
func (h *fixture[Tx]) retry(rows ...store.RowRevision) error {
	return errors.Join(h.requeuer().Requeue(h.t.context(), act("retry"), rows...)...)
}

func (h *fixture[Tx]) release(rows ...store.RowRevision) error {
	return errors.Join(h.requeuer().Release(h.t.context(), act("release"), rows...)...)
}

func (h *fixture[Tx]) discard(rows ...store.RowRevision) error {
	return errors.Join(h.inbox().Discard(h.t.context(), act("discard"), rows...)...)
}

// testActs tests discards.
func (s suite[Tx]) testActs(t *T) {
	s.run(t, "discard_closes_a_row_and_its_marker",
		"Discard closes a row and its marker in one recorded transaction; copies then find the identity discarded.", func(t *T, h *fixture[Tx]) {
			r := h.park("a")
			t.must(h.discard(r.Seen()))
			if after := h.rowOfIdentity("a", false); after.State != store.StateDiscarded || after.Revision == r.Revision {
				t.Errorf("the row is %+v", after)
			}
			h.wantKinds(h.asks(h.contentMark("a", 1)), already(store.Discarded))
			h.wantActs(r.Number, "discard done")
		})
	s.run(t, "discarding_a_conflict_leaves_the_marker", "Discarding a conflict closes only the conflict's own row.", func(t *T, h *fixture[Tx]) {
		h.deliver(h.contentMark("a", 1))
		h.conflict("a", 2)
		r := h.rowOfIdentity("a", true)
		t.must(h.discard(r.Seen()))
		h.wantKinds(h.asks(h.contentMark("a", 1)), already(store.Applied))
	})
}

// testRequeues tests retries of rows.
func (s suite[Tx]) testRequeues(t *T) {
	s.run(t, "a_retry_makes_a_row_due",
		"A retried parked row and its marker become due; the row is claimed and takes effect once.", func(t *T, h *fixture[Tx]) {
			r := h.park("a")
			t.must(h.retry(r.Seen()))
			if after := h.number(r.Number); after.State != store.StateFailedRetryable || after.Revision == r.Revision {
				t.Errorf("the row is %+v", after)
			}
			h.wantOutcome("a", store.Waiting)
			h.wantActs(r.Number, "retry done")
			h.works(r.Number)
			h.wantOutcome("a", store.Applied)
			h.wantCount("a", 1)
		})
	s.run(t, "a_waiting_row_can_be_retried", "Retry makes a waiting row due at once.", func(t *T, h *fixture[Tx]) {
		r := h.put("a", store.Row{State: store.StateFailedRetryable, After: long, Message: &semel.Message{Body: []byte("a")}})
		t.must(h.retry(r.Seen()))
		t.wantErr("a second time", h.retry(h.number(r.Number).Seen()), semel.ErrState)
		h.works(r.Number)
	})
	t.Run("law_5_a_claim_that_an_operator_released_ends_nothing", "After an operator releases or discards a row, its previous claim can no longer end it.", func(t *T) {
		for verb, do := range map[string]func(h *fixture[Tx], r store.StoredRow) error{
			"release": func(h *fixture[Tx], r store.StoredRow) error {
				return h.release(r.Seen())
			},
			"discard": func(h *fixture[Tx], r store.StoredRow) error {
				return h.discard(r.Seen())
			},
		} {
			h := s.open(t)
			c := h.claimed("a")[0]
			if s.h.Can.OneWriter { // with a single writer, the command would wait for the open batch
				t.must(do(h, h.number(c.Number)))
				h.wantKinds(h.asks(h.asking(c)), store.Verdict{Kind: store.ClaimLost})
				h.wantActs(c.Number, verb+" done")
				continue
			}
			b, v := h.begin(h.asking(c))
			h.wantKinds(v, fresh)
			t.must(do(h, h.number(c.Number)))
			if r := b.Commit(t.context(), store.Ending{Claims: []store.ClaimEnding{{Claim: c.Claim, State: store.StateCompleted}}}); r.Outcome != store.NotCommitted || r.Class != store.ClassClaimLost {
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
	s.run(t, "an_identity_has_one_waiting_row",
		"At most one row of an identity waits at a time, and none waits while the identity is applied.", func(t *T, h *fixture[Tx]) {
			first := h.park("a")
			h.conflict("a", 2)
			other := h.rowOfIdentity("a", true)
			t.must(h.retry(other.Seen()))
			t.wantErr("while another row of the identity waits", h.retry(first.Seen()), semel.ErrConflict)
			h.works(other.Number)
			t.wantErr("while the identity is applied", h.retry(first.Seen()), semel.ErrConflict)
			h.wantKinds(h.asks(h.contentMark("a", 2)), already(store.Applied))
			h.wantKinds(h.asks(h.contentMark("a", 1)), conflict)
			h.wantActs(first.Number)
		})
	s.run(t, "a_finished_row_is_not_run_again", "A command on a closed row, or with an outdated revision, is refused and changes nothing.", func(t *T, h *fixture[Tx]) {
		r := h.park("a")
		for _, do := range []func(context.Context, store.Act, ...store.RowRevision) []error{h.requeuer().Requeue, h.requeuer().Release} {
			errs := do(t.context(), act("retry"), store.RowRevision{Number: r.Number, Revision: r.Revision + 1})
			if len(errs) != 1 || !errors.Is(errs[0], semel.ErrChanged) {
				t.Errorf("with another revision: %v", errs)
			}
		}
		t.wantErr("a release of a parked row", h.release(r.Seen()), semel.ErrState)
		t.must(h.discard(r.Seen()))
		t.wantErr("a retry of a discarded row", h.retry(h.number(r.Number).Seen()), semel.ErrState)
		h.wantActs(r.Number, "discard done")
	})
}

func (h *fixture[Tx]) requeuer() admin.Requeuer { return h.Store.(admin.Requeuer) }

// works claims the row with the given number, which must be the only row that can be claimed, and commits its effect.
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
	h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: got[0].Claim, State: store.StateCompleted, Ran: true}}})
	h.wantState("the row", h.number(number), store.StateCompleted)
}

// testRefusals tests commands on rows that have changed since they were read, or that are closed.
func (s suite[Tx]) testRefusals(t *T) {
	s.run(t, "an_act_on_a_changed_row_does_nothing",
		"A command with an outdated revision, or on a row that does not exist, returns ErrChanged and leaves no record.", func(t *T, h *fixture[Tx]) {
			r := h.park("a")
			for _, at := range [][2]int64{{r.Number, r.Revision + 1}, {r.Number + 1, r.Revision}, {-1, 1}} {
				t.wantErr("discard", h.discard(store.RowRevision{Number: at[0], Revision: at[1]}), semel.ErrChanged)
			}
			h.wantActs(0)
		})
	s.run(t, "a_closed_row_stays_closed", "A discarded or completed row accepts no further command.", func(t *T, h *fixture[Tx]) {
		r := h.park("a")
		t.must(h.discard(r.Seen()))
		r = h.rowOfIdentity("a", false)
		t.wantErr("a second discard", h.discard(r.Seen()), semel.ErrState)
		h.wantActs(r.Number, "discard done")
	})
}

// testRecords tests which audit records the commands write, and how the records are listed.
func (s suite[Tx]) testRecords(t *T) {
	s.run(t, "acts_are_listed_oldest_first",
		"Acts are listed in the order in which they were done, of one row or of all rows, up to a limit.", func(t *T, h *fixture[Tx]) {
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

// testManyActs tests commands on several rows at once.
func (s suite[Tx]) testManyActs(t *T) {
	s.run(t, "of_many_rows_each_is_judged_alone",
		"A retry of many rows makes each eligible row due, records it, and returns an error for each other row.", func(t *T, h *fixture[Tx]) {
			a, closed, b := h.park("a"), h.discards(h.park("closed")), h.park("b")
			stale := store.RowRevision{Number: b.Number, Revision: b.Revision + 1}
			first, second := h.twins("twin")
			gone := store.RowRevision{Number: second.Number + 1000, Revision: 1}
			c := h.park("c")
			errs := h.requeuer().Requeue(t.context(), act("retry"), a.Seen(), closed.Seen(), stale, first.Seen(), second.Seen(), gone, c.Seen(), a.Seen())
			h.wantEach(errs, nil, semel.ErrState, semel.ErrChanged, nil, admin.ErrOpen, semel.ErrChanged, nil, semel.ErrChanged)
			for _, r := range []store.StoredRow{a, first, c} {
				h.wantActs(r.Number, "retry done")
				h.wantOutcome(r.Key.ID, store.Waiting)
				h.wantState("the row", h.number(r.Number), store.StateFailedRetryable)
			}
			h.wantActs(b.Number)
			h.wantActs(second.Number)
			if after := h.number(second.Number); after.State != store.StateParked || after.Revision != second.Revision {
				t.Errorf("the conflict is %+v", after)
			}
			h.wantKinds(h.asks(h.contentMark("b", 1)), already(store.Parked))
		})
	s.run(t, "many_rows_are_discarded_at_once",
		"A discard of many rows closes each row with its marker, including two rows of one identity, and returns an error for each other row.", func(t *T, h *fixture[Tx]) {
			a, closed := h.park("a"), h.discards(h.park("closed"))
			first, second := h.twins("twin")
			h.retries(second)
			second = h.number(second.Number)
			errs := h.inbox().Discard(t.context(), act("discard"), a.Seen(), closed.Seen(), second.Seen(), h.number(first.Number).Seen())
			h.wantEach(errs, nil, semel.ErrState, nil, nil)
			for _, r := range []store.StoredRow{a, first} {
				h.wantActs(r.Number, "discard done")
			}
			h.wantKinds(h.asks(h.contentMark("a", 1)), already(store.Discarded))
			h.wantKinds(h.asks(h.contentMark("twin", 1)), already(store.Discarded))
		})
}

// wantEach checks that each error in the list got wraps the expected error with the same index.
func (h *fixture[Tx]) wantEach(got []error, expected ...error) {
	h.t.Helper()
	if len(got) != len(expected) {
		h.t.Fatalf("%d errors for %d rows: %v", len(got), len(expected), got)
	}
	for i, err := range got {
		if !errors.Is(err, expected[i]) {
			h.t.Errorf("row %d of the command: %v, want %v", i, err, expected[i])
		}
	}
}

// testRowless tests a store that has no inbox.
func (s suite[Tx]) testRowless(t *T) {
	s.run(t, "case_7_without_an_inbox_a_commit_with_a_row_is_refused_and_writes_nothing",
		"A store without an inbox must not commit a batch that has a row: the message would be acked and exist nowhere.", func(t *T, h *fixture[Tx]) {
			parked := h.mark("b")
			parked.As = store.Parked
			marks := []store.Mark{h.mark("a"), parked}
			b, v := h.begin(marks...)
			h.wantKinds(v, fresh, fresh)
			t.must(h.Effect(t.context(), b.Tx(0), "a"))
			r := b.Commit(t.context(), store.Ending{Rows: []store.Row{
				{Mark: 1, State: store.StateParked, Reason: semel.ReasonPermanent, Message: &semel.Message{Body: []byte("b")}},
			}})
			if r.Outcome != store.NotCommitted || r.Class != store.ClassPermanent || r.Err == nil {
				t.Errorf("Commit returned %+v, want not committed, class permanent, with an error", r)
			}
			h.wantCount("a", 0)
			h.wantKinds(h.deliver(h.markAll("a", "b")...), fresh, fresh)
			h.wantCount("a", 1)
		})
}

// looks calls LookUpMarkers for marks, and returns the store's answers (new, duplicate, conflict).
func (h *fixture[Tx]) looks(marks ...store.Mark) []store.Verdict {
	h.t.Helper()
	v, err := h.Store.(store.Leases).LookUpMarkers(h.t.context(), marks)
	h.t.must(err)
	if len(v) != len(marks) {
		h.t.Fatalf("%d marks have %d verdicts", len(marks), len(v))
	}
	return v
}

// testLookUp tests lookups of markers.
func (s suite[Tx]) testLookUp(t *T) {
	s.run(t, "case_16_a_lookup_returns_committed_marks",
		"Lookup returns for each mark the outcome that Begin would return, and writes nothing.", func(t *T, h *fixture[Tx]) {
			h.deliver(h.contentMark("a", 1), h.mark("none"))
			h.park("parked")
			long := strings.Repeat("long", 100)
			h.deliver(h.contentMark(long, 1))
			for range 2 {
				v := h.looks(h.contentMark("b", 1), h.contentMark("a", 1), h.contentMark("a", 2), h.contentMark("parked", 1), h.contentMark(long, 1), h.contentMark("a", 1), h.mark("none"))
				h.wantKinds(v, fresh, already(store.Applied), conflict, already(store.Parked), already(store.Applied), already(store.Applied), already(store.Applied))
			}
			h.wantKinds(h.looks())
			h.wantKinds(h.asks(h.contentMark("b", 1)), fresh)
		})
	s.run(t, "case_5_a_lookup_waits_for_no_batch",
		"Lookup does not see another batch's mark before its commit, and never sees it after a rollback.", func(t *T, h *fixture[Tx]) {
			b, _ := h.begin(h.contentMark("a", 1))
			h.wantKinds(h.looks(h.contentMark("a", 1)), fresh)
			b.Rollback(t.context())
			h.wantKinds(h.looks(h.contentMark("a", 1)), fresh)
			b, _ = h.begin(h.contentMark("a", 1))
			h.commit(b, store.Ending{})
			h.wantKinds(h.looks(h.contentMark("a", 1)), already(store.Applied))
		})
}
