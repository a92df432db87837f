package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// testLeases runs the cases about claims on a store that has transactions.
func (s suite[Tx]) testLeases(t *T) {
	leases(t, LeaseHarness{Open: func(tb testing.TB) LeaseInstance {
		h := s.open(&T{TB: tb})
		return LeaseInstance{
			Store: h.leases(),
			Put: func(_ testing.TB, id string, after time.Duration, size int) int64 {
				return h.receive(id, after, make([]byte, size)).Number
			},
			Row: func(_ testing.TB, number int64) store.StoredRow { return h.number(number) },
		}
	}})
	s.testClaims(t)
	s.testWaitingRows(t)
	s.testRequeues(t)
	s.testManyActs(t)
	s.testTransitions(t)
	s.testConcurrentActs(t)
	s.testMarkerOwner(t)
	s.testReopened(t)
	s.testBesideOpenRow(t)
	s.testTwinTable(t)
	s.testClockAhead(t)
}

func (h *fixture[Tx]) leases() store.Leases { return h.Store.(store.Leases) }

// receive stores a message in the inbox, and returns the message's row. The parameter after is the duration for which
// the row waits.
func (h *fixture[Tx]) receive(id string, after time.Duration, body []byte) store.StoredRow {
	h.t.Helper()
	return h.put(id, store.Row{State: store.StateReceived, After: after, Message: &semel.Message{Body: body}})
}

func (h *fixture[Tx]) number(n int64) store.StoredRow {
	h.t.Helper()
	rows := h.list(store.RowFilter{Numbers: []int64{n}})
	if len(rows) != 1 {
		h.t.Fatalf("there are %d rows with number %d", len(rows), n)
	}
	return rows[0]
}

// claimed receives messages with the given ids, and claims their rows.
func (h *fixture[Tx]) claimed(ids ...string) []store.Claimed {
	h.t.Helper()
	for _, id := range ids {
		h.receive(id, 0, []byte(id))
	}
	got, err := h.leases().Claim(h.t.context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: len(ids), Lease: long})
	h.t.must(err)
	if len(got) != len(ids) {
		h.t.Fatalf("%d rows are claimed, want %d", len(got), len(ids))
	}
	return got
}

// asking returns a mark for the message of a claimed row. The mark contains the claim.
func (h *fixture[Tx]) asking(c store.Claimed) store.Mark {
	m := h.contentMark(c.Row.Key.ID, 1)
	m.Claim = c.Claim
	return m
}

// steal lets another worker claim a row whose claim is still valid.
func (h *fixture[Tx]) steal(c store.Claimed) store.Claim {
	h.t.Helper()
	t := store.NewToken()
	got, err := h.leases().Reclaim(h.t.context(), []int64{c.Number}, []store.Token{c.Token}, t)
	if err != nil || !got[0].Taken {
		h.t.Fatalf("%+v, %v", got, err)
	}
	return store.Claim{Number: c.Number, Token: t}
}

func (h *fixture[Tx]) wantOutcome(id string, o store.Outcome) {
	h.t.Helper()
	h.wantKinds(h.asks(h.contentMark(id, 1)), already(o))
}

// testClaims tests batches that process and end a claim.
func (s suite[Tx]) testClaims(t *T) {
	for _, state := range endings {
		s.run(t, "law_12_a_claim_ends_with_its_batch/"+state.String(),
			"The row, marker and effect of a claim change in one commit, and not before.", func(t *T, h *fixture[Tx]) {
				c := h.claimed("a")[0]
				b, v := h.begin(h.asking(c))
				h.wantKinds(v, fresh)
				done := 0
				if state == store.StateCompleted {
					done = 1
					h.t.must(h.Effect(t.context(), b.Tx(0), "a"))
				}
				h.wantState("before the commit the row", h.number(c.Number), store.StateInProgress)
				h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: c.Claim, State: state, Ran: true}}})
				if r := h.number(c.Number); r.State != state || r.Attempts != 1 {
					t.Errorf("the row is %+v, want state %s", r, state)
				}
				h.wantOutcome("a", state.Outcome())
				h.wantCount("a", done)
			})
	}
	s.run(t, "law_5_an_effect_whose_claim_is_lost_is_rolled_back",
		"A batch that ends a claim which another worker holds commits nothing, for none of its messages.", func(t *T, h *fixture[Tx]) {
			all := h.claimed("a", "b")
			marks := []store.Mark{h.asking(all[0]), h.mark("c"), h.asking(all[1])}
			b, v := h.begin(marks...)
			h.wantKinds(v, fresh, fresh, fresh)
			h.apply(b, marks, v)
			heir, told := all[1].Claim, store.Claim{Number: all[1].Number, Token: store.NewToken()}
			if !s.h.Can.OneWriter { // with a single writer, no other worker can claim the row while the batch is open
				heir, told = h.steal(all[1]), all[1].Claim
			}
			e := store.Ending{Claims: []store.ClaimEnding{{Claim: all[0].Claim, State: store.StateCompleted}, {Claim: told, Mark: 2, State: store.StateCompleted}}}
			if r := b.Commit(t.context(), e); r.Outcome != store.NotCommitted || r.Class != store.ClassClaimLost {
				t.Errorf("Commit returned %+v, want a lost claim", r)
			}
			for _, id := range []string{"a", "b", "c"} {
				h.wantCount(id, 0)
			}
			marks[2].Claim = told
			h.wantKinds(h.asks(append(marks, store.Mark{Scope: h.scope, ID: []byte("b"), Claim: heir})...),
				fresh, fresh, store.Verdict{Kind: store.ClaimLost}, fresh)
		})
	s.run(t, "law_5_a_lost_claim_is_reported_when_its_batch_begins",
		"Begin reports which claims of a batch are lost; the other claims continue.", func(t *T, h *fixture[Tx]) {
			all := h.claimed("a", "b")
			h.steal(all[0])
			b, v := h.begin(h.asking(all[0]), h.mark("c"), h.asking(all[1]))
			h.wantKinds(v, store.Verdict{Kind: store.ClaimLost}, fresh, fresh)
			h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: all[1].Claim, Mark: 2, State: store.StateCompleted}}})
			h.wantOutcome("b", store.Applied)
			h.wantOutcome("a", store.Waiting)
		})
	s.run(t, "law_5_an_extension_during_a_batch_reports_lost_claims",
		"While a batch is open, an extension also reports which claims are lost.", func(t *T, h *fixture[Tx]) {
			all := h.claimed("a", "b")
			h.steal(all[0])
			b, _ := h.begin(h.asking(all[1]))
			lost, err := h.leases().Extend(t.context(), []store.Claim{all[0].Claim, all[1].Claim}, time.Minute)
			if err != nil || !slices.Equal(lost, []int{0}) {
				t.Errorf("%v are lost, %v; want the first", lost, err)
			}
			h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: all[1].Claim, State: store.StateCompleted}}})
		})
	s.run(t, "law_6_an_expired_lease_is_reported_when_its_batch_begins",
		"A claim whose lease has ended does not begin, even if nobody else has claimed the row.", func(t *T, h *fixture[Tx]) {
			h.receive("a", 0, nil)
			got, err := h.leases().Claim(t.context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 1, Lease: brief})
			t.must(err)
			for ctx := t.context(); ctx.Err() == nil; time.Sleep(brief) {
				if v := h.asks(h.asking(got[0])); v[0].Kind == store.ClaimLost {
					return
				}
			}
			t.Error("the claim is valid after its lease has ended")
		})
	s.run(t, "D3_a_claim_that_its_batch_does_not_end_stays_valid",
		"A batch that rolls back, or that does not end one of its claims, leaves that claim unchanged.", func(t *T, h *fixture[Tx]) {
			c := h.claimed("a")[0]
			b, _ := h.begin(h.asking(c))
			b.Rollback(t.context())
			b, _ = h.begin(h.asking(c), h.mark("b"))
			h.commit(b, store.Ending{Trim: []int{0}})
			h.wantKinds(h.asks(h.asking(c)), fresh)
			h.wantOutcome("b", store.Applied)
		})
}

// testWaitingRows tests copies of messages that wait in the inbox.
func (s suite[Tx]) testWaitingRows(t *T) {
	s.run(t, "law_9_a_copy_of_a_waiting_message_is_a_duplicate",
		"A copy of a message in the inbox gets the verdict waiting, also while the row is claimed, and can be counted on the row.", func(t *T, h *fixture[Tx]) {
			c := h.claimed("a")[0]
			b, v := h.begin(h.contentMark("a", 1))
			h.wantKinds(v, already(store.Waiting))
			h.commit(b, store.Ending{Rows: []store.Row{{Repeat: true}}})
			if r := h.number(c.Number); r.Repeated != 1 || r.State != store.StateInProgress {
				t.Errorf("the row is %+v", r)
			}
			b, v = h.begin(h.asking(c))
			h.wantKinds(v, fresh)
			h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: c.Claim, State: store.StateCompleted}}})
			h.wantOutcome("a", store.Applied)
		})
	s.run(t, "law_10_other_content_of_a_waiting_message_is_a_conflict", "The content of a waiting identity is fixed; other content is a conflict.", func(t *T, h *fixture[Tx]) {
		h.receive("a", 0, nil)
		h.wantKinds(h.asks(h.contentMark("a", 2)), conflict)
	})
	s.run(t, "law_6_a_row_waits_by_the_stores_clock", "The verdict on a waiting message says when its row is due.", func(t *T, h *fixture[Tx]) {
		r := h.receive("a", long, nil)
		if wait := r.DueAt.Sub(r.ReceivedAt); wait < long-time.Second || wait > long+time.Second {
			t.Errorf("due %v after it was received, want %v", wait, long)
		}
	})
}

// endCases tests how claims end.
func endCases(run runCase) {
	for _, state := range endings {
		run("D4_each_event_ends_a_claim_in_its_state/"+state.String(), "Each end of a claim puts the row into its state, without a claim, and with the error and reason of the run.", func(h *claimFixture) {
			n := h.put("a")
			c := h.claimOne(long)
			lost, err := h.Store.Start(h.t.context(), []store.Claim{c.Claim})
			if err != nil || len(lost) != 0 {
				h.t.Fatalf("lost %v, %v", lost, err)
			}
			if !h.end(store.ClaimEnding{Claim: c.Claim, State: state, After: long, Reason: semel.ReasonPermanent, Ran: true, Began: true, Error: "why"}) {
				h.t.Fatal("the claim is lost")
			}
			r := h.wantState(n, state)
			if r.Attempts != 1 || r.Started != 0 || r.Reason != semel.ReasonPermanent || r.FirstError != "why" || r.LastError != "why" || !r.LockedUntil.IsZero() {
				h.t.Errorf("%+v", r)
			}
			if h.end(store.ClaimEnding{Claim: c.Claim, State: state}) {
				h.t.Error("it ends twice")
			}
			if again := h.claimUpTo(10, long); len(again) != 0 { // no waiting row is claimed before its time
				h.t.Errorf("claimed again: %+v", again)
			}
		})
	}
	run("D3_a_released_row_is_due_at_once", "A row that was released, or failed and is due again, is claimed again and is not suspect.", func(h *claimFixture) {
		n := h.put("a")
		for _, state := range []store.RowState{store.StateReceived, store.StateFailedRetryable} {
			c := h.claimOne(long)
			if !h.end(store.ClaimEnding{Claim: c.Claim, State: state}) {
				h.t.Fatal("the claim is lost")
			}
		}
		if c := h.claimOne(long); c.Number != n || c.Suspect {
			h.t.Errorf("%+v", c)
		}
	})
	run("D5_a_release_takes_back_only_its_own_start", "A row stays suspect after a lease ended without a result until a handler returns, even if other workers claim and release the row in between.", func(h *claimFixture) {
		n := h.put("a")
		h.claimOne(brief)
		suspect := func(starts int) store.Claimed {
			h.t.Helper()
			c := h.reclaim(n)
			if !c.Suspect || c.Row.Started != starts {
				h.t.Errorf("suspect %t with %d starts, want %d", c.Suspect, c.Row.Started, starts)
			}
			return c
		}
		c := suspect(1)
		if !h.end(store.ClaimEnding{Claim: c.Claim, State: store.StateReceived}) {
			h.t.Fatal("the claim is lost")
		}
		c = suspect(1)
		if lost, err := h.Store.Start(h.t.context(), []store.Claim{c.Claim}); err != nil || len(lost) > 0 {
			h.t.Fatal(lost, err)
		}
		if r := h.Row(h.t, n); r.Started != 2 {
			h.t.Errorf("%+v", r)
		}
		if !h.end(store.ClaimEnding{Claim: c.Claim, State: store.StateReceived, Began: true}) {
			h.t.Fatal("the claim is lost")
		}
		c = suspect(1)
		if !h.end(store.ClaimEnding{Claim: c.Claim, State: store.StateFailedRetryable, Ran: true}) {
			h.t.Fatal("the claim is lost")
		}
		if c := h.claimOne(long); c.Suspect || c.Row.Started != 0 {
			h.t.Errorf("%+v", c)
		}
	})
	run("law_7_a_lost_claim_does_not_prevent_others_from_ending", "If several claims end in one call, each ending succeeds or fails alone.", func(h *claimFixture) {
		a, b := h.put("a"), h.put("b")
		both := h.claimUpTo(2, long)
		if len(both) != 2 || !h.end(store.ClaimEnding{Claim: both[0].Claim, State: store.StateParked}) {
			h.t.Fatalf("claimed %+v", both)
		}
		lost, err := h.Store.End(h.t.context(), []store.ClaimEnding{{Claim: both[0].Claim, State: store.StateCompleted}, {Claim: both[1].Claim, State: store.StateCompleted}})
		if err != nil || !slices.Equal(lost, []int{0}) {
			h.t.Errorf("lost %v, %v", lost, err)
		}
		h.wantState(a, store.StateParked)
		h.wantState(b, store.StateCompleted)
	})
}

// gathers begins a batch for a claim that can be combined with the batches of other claims. The handler writes
// its effect before a transaction begins.
func (h *fixture[Tx]) gathers(c store.Claimed, effect string) admin.QueuedBatch[Tx] {
	h.t.Helper()
	b := h.Store.(admin.QueueStore[Tx]).Combinable(h.asking(c))
	h.t.must(h.Effect(h.t.context(), b.Tx(0), effect))
	return admin.QueuedBatch[Tx]{Batch: b, Ending: store.Ending{Claims: []store.ClaimEnding{{Claim: c.Claim, State: store.StateCompleted, Ran: true}}}}
}

func (h *fixture[Tx]) commitsGathered(all ...admin.QueuedBatch[Tx]) store.Result {
	return h.Store.(admin.QueueStore[Tx]).CommitCombined(h.t.context(), store.TxOptions{}, all)
}

func (h *fixture[Tx]) wantGathered(c store.Claimed, state store.RowState, effects int) {
	h.t.Helper()
	if r, n := h.number(c.Number), h.Count(h.t, c.Row.Key.ID); r.State != state || n != effects {
		h.t.Errorf("%s is %s with %d effects, want %s and %d", c.Row.Key.ID, r.State, n, state, effects)
	}
}

// testGather tests transactions that several claims share.
func (s suite[Tx]) testGather(t *T) {
	s.run(t, "K10_law_1_claims_that_share_a_transaction_end_with_their_effects",
		"All effects and all endings of claims that share a transaction are in one commit.", func(t *T, h *fixture[Tx]) {
			all := h.claimed("a", "b", "c")
			var gathered []admin.QueuedBatch[Tx]
			for _, c := range all {
				gathered = append(gathered, h.gathers(c, c.Row.Key.ID))
			}
			for _, c := range all {
				h.wantGathered(c, store.StateInProgress, 0)
			}
			if r := h.commitsGathered(gathered...); r.Outcome != store.Committed {
				t.Fatalf("%+v", r)
			}
			for _, c := range all {
				h.wantGathered(c, store.StateCompleted, 1)
			}
		})
	s.run(t, "law_5_a_claim_that_is_lost_leaves_nothing_of_a_shared_transaction",
		"If one claim is lost, no effect and no ending of the shared transaction is visible, and each other claim can commit alone.", func(t *T, h *fixture[Tx]) {
			all := h.claimed("a", "b")
			a, b := h.gathers(all[0], "a"), h.gathers(all[1], "b")
			h.steal(all[1])
			if r := h.commitsGathered(a, b); r.Outcome != store.NotCommitted || r.Class != store.ClassClaimLost {
				t.Errorf("together: %+v", r)
			}
			for _, c := range all {
				h.wantGathered(c, store.StateInProgress, 0)
			}
			if r := h.commitsGathered(b); r.Outcome != store.NotCommitted || r.Class != store.ClassClaimLost {
				t.Errorf("the lost claim alone: %+v", r)
			}
			if r := a.Batch.Commit(t.context(), a.Ending); r.Outcome != store.Committed {
				t.Errorf("the other claim alone: %+v", r)
			}
			h.wantGathered(all[0], store.StateCompleted, 1)
			h.wantGathered(all[1], store.StateInProgress, 0)
		})
	s.run(t, "law_3_a_queued_batch_that_fails_leaves_nothing",
		"A handler that failed before its transaction began leaves nothing behind.", func(t *T, h *fixture[Tx]) {
			c := h.claimed("a")[0]
			h.gathers(c, "a").Batch.Rollback(t.context())
			h.wantGathered(c, store.StateInProgress, 0)
			if r := h.commitsGathered(h.gathers(c, "a")); r.Outcome != store.Committed {
				t.Errorf("%+v", r)
			}
			h.wantGathered(c, store.StateCompleted, 1)
		})
	s.run(t, "law_5_a_claim_that_ended_has_no_second_effect",
		"A queued batch is written once, however often it is passed to the store.", func(t *T, h *fixture[Tx]) {
			c := h.claimed("a")[0]
			g := h.gathers(c, "a")
			again := h.gathers(c, "a")
			if r := h.commitsGathered(g); r.Outcome != store.Committed {
				t.Errorf("%+v", r)
			}
			if r := h.commitsGathered(again); r.Outcome != store.NotCommitted || r.Class != store.ClassClaimLost {
				t.Errorf("again: %+v", r)
			}
			h.wantGathered(c, store.StateCompleted, 1)
		})
}
