package storetest

import (
	"github.com/semel-go/semel/store"
)

// gathers has the handler of a claim add to an effect before anything is begun.
func (h *fixture[Tx]) gathers(c store.Claimed, effect string) store.QueuedBatch[Tx] {
	h.t.Helper()
	b := h.Store.(store.QueueStore[Tx]).Combinable(h.asking(c))
	h.t.must(h.Effect(h.t.context(), b.Tx(0), effect))
	return store.QueuedBatch[Tx]{Batch: b, Ending: store.Ending{Claims: []store.ClaimEnding{{Claim: c.Claim, Event: store.RowCompleted, Ran: true}}}}
}

func (h *fixture[Tx]) commitsGathered(all ...store.QueuedBatch[Tx]) store.Result {
	return h.Store.(store.QueueStore[Tx]).CommitCombined(h.t.context(), store.TxOptions{}, all)
}

// wantGathered compares what became of a claim.
func (h *fixture[Tx]) wantGathered(c store.Claimed, state store.RowState, effects int) {
	h.t.Helper()
	if r, n := h.number(c.Number), h.Count(h.t, c.Row.Key.ID); r.State != state || n != effects {
		h.t.Errorf("%s is %s with %d effects, want %s and %d", c.Row.Key.ID, r.State, n, state, effects)
	}
}

// gathered are the laws of transactions that the handlers of several claims share.
func (s suite[Tx]) gathered(t *T) {
	t.Run("K10_law_1_claims_that_share_a_transaction_end_with_their_effects", "Of several claims all effects and all ends are in one commit.", func(t *T) {
		h := s.opened(t)
		all := h.claimed("a", "b", "c")
		var gathered []store.QueuedBatch[Tx]
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
	t.Run("law_5_a_claim_that_is_lost_leaves_nothing_of_a_shared_transaction", "If one claim does not stand, no effect and no end of any is there, and each of the others can be committed by itself.", func(t *T) {
		h := s.opened(t)
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
			t.Errorf("the lost one by itself: %+v", r)
		}
		if r := a.Batch.Commit(t.context(), a.Ending); r.Outcome != store.Committed {
			t.Errorf("the other by itself: %+v", r)
		}
		h.wantGathered(all[0], store.StateCompleted, 1)
		h.wantGathered(all[1], store.StateInProgress, 0)
	})
	t.Run("law_3_what_was_gathered_and_rolled_back_is_nowhere", "A handler that failed before its transaction began leaves nothing.", func(t *T) {
		h := s.opened(t)
		c := h.claimed("a")[0]
		h.gathers(c, "a").Batch.Rollback(t.context())
		h.wantGathered(c, store.StateInProgress, 0)
		if r := h.commitsGathered(h.gathers(c, "a")); r.Outcome != store.Committed {
			t.Errorf("%+v", r)
		}
		h.wantGathered(c, store.StateCompleted, 1)
	})
	t.Run("law_5_a_claim_that_ended_has_no_second_effect", "What was gathered under a claim is written once, however often it is given.", func(t *T) {
		h := s.opened(t)
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
