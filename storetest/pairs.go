package storetest

import (
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// pairs is the state of a row after each event in each state; of those that are
// missing nothing may change.
var pairs = map[contract.RowState]map[contract.RowEvent]contract.RowState{
	contract.StateReceived: {
		contract.RowClaimed:   contract.StateInProgress,
		contract.RowDiscarded: contract.StateDiscarded,
	},
	contract.StateInProgress: {
		contract.RowClaimed:      contract.StateInProgress, // when its lease has ended
		contract.RowCompleted:    contract.StateCompleted,
		contract.RowFailed:       contract.StateFailedRetryable,
		contract.RowParked:       contract.StateParked,
		contract.RowDeadLettered: contract.StateDeadLettered,
		contract.RowDiscarded:    contract.StateDiscarded,
		contract.RowReleased:     contract.StateReceived,
		contract.RowStepped:      contract.StateReceived,
		contract.RowBlocked:      contract.StateBlocked,
	},
	contract.StateBlocked: { // and what frees it: see streams.go
		contract.RowClaimed:   contract.StateInProgress, // when it has waited for too long
		contract.RowDiscarded: contract.StateDiscarded,
	},
	contract.StateFailedRetryable: {
		contract.RowClaimed:   contract.StateInProgress, // when it is due
		contract.RowRetried:   contract.StateFailedRetryable,
		contract.RowDiscarded: contract.StateDiscarded,
	},
	contract.StateParked: {
		contract.RowRetried:   contract.StateFailedRetryable,
		contract.RowDiscarded: contract.StateDiscarded,
	},
	contract.StateDeadLettered: {
		contract.RowRetried:   contract.StateFailedRetryable,
		contract.RowDiscarded: contract.StateDiscarded,
	},
	contract.StateCompleted: {},
	contract.StateDiscarded: {},
}

// ways is how a claimed row comes into each state.
var ways = map[contract.RowState]contract.RowEvent{
	contract.StateReceived: contract.RowReleased, contract.StateFailedRetryable: contract.RowFailed, contract.StateCompleted: contract.RowCompleted,
	contract.StateParked: contract.RowParked, contract.StateDeadLettered: contract.RowDeadLettered, contract.StateDiscarded: contract.RowDiscarded,
	contract.StateBlocked: contract.RowBlocked,
}

// transitions are the laws of states and events, each pair of them.
func (s suite[Tx]) transitions(t *T) {
	for state, after := range pairs {
		t.Run("D4_law_5_each_event_in_each_state/"+state.String(), "An event that may not happen to a row in its state, or comes under a token of before, changes neither row nor marker; any other changes both.", func(t *T) {
			h := s.opened(t)
			for event := contract.RowClaimed; event <= contract.RowBlocked; event++ {
				c, id := h.in(state, event), state.String()+event.String()
				before := h.number(c.Number)
				want, legal := after[event]
				if !legal {
					want = state
				}
				if happened := h.happens(event, before, c); happened != legal {
					t.Errorf("%s in %s happened: %t", event, state, happened)
				}
				r := h.number(c.Number)
				if r.State != want || !legal && r.Revision != before.Revision {
					t.Errorf("%s in %s: the row is %+v, want %s", event, state, r, want)
				}
				h.wantOutcome(id, want.Outcome())
			}
		})
	}
}

// in returns a row in a state, with a claim that it has or had.
func (h *fixture[Tx]) in(state contract.RowState, event contract.RowEvent) contract.Claim {
	h.t.Helper()
	n := h.receive(state.String()+event.String(), 0, nil).Number
	lease := long
	if event == contract.RowClaimed {
		lease = brief // so that it is over when it is claimed again
	}
	got := h.takes(n, lease)
	if len(got) != 1 {
		h.t.Fatalf("claimed %+v", got)
	}
	way, ends := ways[state]
	if !ends {
		return got[0].Claim
	}
	wait := long
	if event == contract.RowClaimed {
		wait = 0 // so that it is due
	}
	if way == contract.RowReleased {
		wait = 0
	}
	lost, err := h.leases().End(h.t.context(), []contract.ClaimEnding{{Claim: got[0].Claim, Event: way, After: wait}})
	h.t.must(err)
	if len(lost) != 0 {
		h.t.Fatal("the claim does not stand")
	}
	return got[0].Claim
}

func (h *fixture[Tx]) takes(number int64, lease time.Duration) []contract.Claimed {
	h.t.Helper()
	got, err := h.leases().Claim(h.t.context(), contract.ClaimOptions{Consumer: "billing", Token: contract.NewToken(), Numbers: []int64{number}, Most: 1, Lease: lease})
	h.t.must(err)
	return got
}

// happens lets an event happen to a row as it was seen, and reports whether it did.
func (h *fixture[Tx]) happens(event contract.RowEvent, seen contract.StoredRow, c contract.Claim) bool {
	h.t.Helper()
	person := func(do func() error) bool {
		err := do()
		if err != nil && !errors.Is(err, semel.ErrState) {
			h.t.Errorf("%s says %v, want nil or ErrState", event, err)
		}
		return err == nil
	}
	switch {
	case event == contract.RowClaimed:
		if seen.State == contract.StateInProgress {
			h.again(seen.Number)
			return true
		}
		return len(h.takes(seen.Number, long)) == 1
	case event == contract.RowRetried:
		return person(func() error { return errors.Join(h.requeuer().Requeue(h.t.context(), act("retry"), seen.Seen())...) })
	case event == contract.RowDiscarded && seen.State != contract.StateInProgress:
		return person(func() error { return errors.Join(h.inbox().Discard(h.t.context(), act("discard"), seen.Seen())...) })
	case event == contract.RowReleased && seen.State != contract.StateInProgress:
		if person(func() error { return errors.Join(h.requeuer().Release(h.t.context(), act("release"), seen.Seen())...) }) {
			return true
		}
	}
	lost, err := h.leases().End(h.t.context(), []contract.ClaimEnding{{Claim: c, Event: event}})
	h.t.must(err)
	return len(lost) == 0
}

// again claims a row once its lease has ended.
func (h *fixture[Tx]) again(number int64) {
	h.t.Helper()
	for ctx := h.t.context(); ctx.Err() == nil; time.Sleep(brief) {
		if len(h.takes(number, long)) == 1 {
			return
		}
	}
	h.t.Fatalf("row %d is not claimable again", number)
}
