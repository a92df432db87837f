package storetest

import (
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// halves give rows that were set aside after they took effect in part, or perhaps.
func (s suite[Tx]) halves() map[string]func(h *fixture[Tx], id string) store.StoredRow {
	all := map[string]func(h *fixture[Tx], id string) store.StoredRow{}
	if s.h.Can.Calls {
		all["a call of it has an unknown outcome"] = func(h *fixture[Tx], id string) store.StoredRow {
			return h.doubted(id, store.RowParked)
		}
	}
	if s.h.Can.Steps {
		all["a step of it took effect"] = func(h *fixture[Tx], id string) store.StoredRow {
			c := h.claimed(id)[0]
			h.endsClaim(store.ClaimEnding{Claim: c.Claim, Event: store.RowStepped, Ran: true, Steps: []store.StepDone{{Name: "charge"}}})
			c = h.claimNext()
			h.endsClaim(store.ClaimEnding{Claim: c.Claim, Event: store.RowParked, Reason: semel.ReasonPermanent, Ran: true})
			return h.number(c.Number)
		}
	}
	return all
}

// beside are the cases of rows that may not be worked on beside another one of their identity.
func (s suite[Tx]) beside(t *T) {
	for name, half := range s.halves() {
		t.Run("law_16_no_conflict_runs_while_of_the_first_content/"+name,
			"A conflict is refused until the first content, which may have taken effect in part, is closed, and also then if steps of it took effect.",
			func(t *T) {
				h := s.opened(t)
				first := half(h, "a")
				h.conflict("a", 2)
				second := h.row("a", true)
				if err := errors.Join(h.requeuer().Requeue(t.context(), act("retry"), second.Seen())...); !errors.Is(err, admin.ErrOpen) {
					t.Errorf("%v, want ErrOpen", err)
				}
				if after := h.number(second.Number); after.Revision != second.Revision {
					t.Errorf("it is %+v", after)
				}
				h.wantActs(second.Number)
				first = h.discards(first)
				if len(first.Steps) > 0 { // a discard undoes none
					if err := errors.Join(h.requeuer().Requeue(t.context(), act("retry"), second.Seen())...); !errors.Is(err, admin.ErrOpen) {
						t.Errorf("beside steps of a discarded row: %v, want ErrOpen", err)
					}
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
		"is_skipped": func(h *fixture[Tx]) { h.t.must(h.streams().SkipTo(h.t.context(), h.at("a"), 1, act("skip"))) },
	} {
		for _, applied := range []bool{true, false} {
			state := "applied"
			if !applied {
				state = "waiting"
			}
			t.Run("law_16_what_was_parked_for_a_gap_stays_beside_a_conflict_that_is_"+state+"_when_the_version_"+name,
				"A row is freed with its marker or not at all, so that no row is due whose marker says that another content is applied.",
				func(t *T) {
					h := s.opened(t)
					r := h.blocks("a", 2, 0)
					c := h.takes(r.Number, long)[0]
					h.endsClaim(store.ClaimEnding{Claim: c.Claim, Event: store.RowParked, Reason: semel.ReasonGap})
					h.conflict("a2", 99)
					second := h.retries(h.row("a2", true))
					if applied {
						h.works(second.Number)
					}
					come(h)
					after := h.number(r.Number)
					if after.State != store.StateParked || after.Reason != semel.ReasonConflict {
						t.Errorf("it is %s for %q", after.State, after.Reason)
					}
					if got := h.takes(r.Number, long); len(got) != 0 {
						t.Errorf("claimed %+v", got)
					}
					if !applied {
						h.works(second.Number)
					}
					h.wantKinds(h.asks(h.print("a2", 99)), already(store.Applied))
					h.wantCount("a2", 1)
				})
		}
	}
}
