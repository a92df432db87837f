package storetest

import (
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// pairs is the state of a row after each event in each state; of those that are
// missing nothing may change.
var pairs = map[store.RowState]map[store.RowEvent]store.RowState{
	store.StateReceived: {
		store.RowClaimed:   store.StateInProgress,
		store.RowDiscarded: store.StateDiscarded,
	},
	store.StateInProgress: {
		store.RowClaimed:      store.StateInProgress, // when its lease has ended
		store.RowCompleted:    store.StateCompleted,
		store.RowFailed:       store.StateFailedRetryable,
		store.RowParked:       store.StateParked,
		store.RowDeadLettered: store.StateDeadLettered,
		store.RowDiscarded:    store.StateDiscarded,
		store.RowReleased:     store.StateReceived,
		store.RowStepped:      store.StateReceived,
		store.RowBlocked:      store.StateBlocked,
	},
	store.StateBlocked: { // and what frees it: see streams.go
		store.RowClaimed:   store.StateInProgress, // when it has waited for too long
		store.RowDiscarded: store.StateDiscarded,
	},
	store.StateFailedRetryable: {
		store.RowClaimed:   store.StateInProgress, // when it is due
		store.RowRetried:   store.StateFailedRetryable,
		store.RowDiscarded: store.StateDiscarded,
	},
	store.StateParked: {
		store.RowRetried:   store.StateFailedRetryable,
		store.RowDiscarded: store.StateDiscarded,
	},
	store.StateDeadLettered: {
		store.RowRetried:   store.StateFailedRetryable,
		store.RowDiscarded: store.StateDiscarded,
	},
	store.StateCompleted: {},
	store.StateDiscarded: {},
}

// ways is how a claimed row comes into each state.
var ways = map[store.RowState]store.RowEvent{
	store.StateReceived: store.RowReleased, store.StateFailedRetryable: store.RowFailed, store.StateCompleted: store.RowCompleted,
	store.StateParked: store.RowParked, store.StateDeadLettered: store.RowDeadLettered, store.StateDiscarded: store.RowDiscarded,
	store.StateBlocked: store.RowBlocked,
}

// transitions are the laws of states and events, each pair of them.
func (s suite[Tx]) transitions(t *T) {
	for state, after := range pairs {
		t.Run("D4_law_5_each_event_in_each_state/"+state.String(), "An event that may not happen to a row in its state, or comes under a token of before, changes neither row nor marker; any other changes both.", func(t *T) {
			h := s.opened(t)
			for event := store.RowClaimed; event <= store.RowBlocked; event++ {
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
func (h *fixture[Tx]) in(state store.RowState, event store.RowEvent) store.Claim {
	h.t.Helper()
	n := h.receive(state.String()+event.String(), 0, nil).Number
	lease := long
	if event == store.RowClaimed {
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
	if event == store.RowClaimed {
		wait = 0 // so that it is due
	}
	if way == store.RowReleased {
		wait = 0
	}
	lost, err := h.leases().End(h.t.context(), []store.ClaimEnding{{Claim: got[0].Claim, Event: way, After: wait}})
	h.t.must(err)
	if len(lost) != 0 {
		h.t.Fatal("the claim does not stand")
	}
	return got[0].Claim
}

func (h *fixture[Tx]) takes(number int64, lease time.Duration) []store.Claimed {
	h.t.Helper()
	got, err := h.leases().Claim(h.t.context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Numbers: []int64{number}, Most: 1, Lease: lease})
	h.t.must(err)
	return got
}

// happens lets an event happen to a row as it was seen, and reports whether it did.
func (h *fixture[Tx]) happens(event store.RowEvent, seen store.StoredRow, c store.Claim) bool {
	h.t.Helper()
	person := func(do func() error) bool {
		err := do()
		if err != nil && !errors.Is(err, semel.ErrState) {
			h.t.Errorf("%s says %v, want nil or ErrState", event, err)
		}
		return err == nil
	}
	switch {
	case event == store.RowClaimed:
		if seen.State == store.StateInProgress {
			h.again(seen.Number)
			return true
		}
		return len(h.takes(seen.Number, long)) == 1
	case event == store.RowRetried:
		return person(func() error { return errors.Join(h.requeuer().Requeue(h.t.context(), act("retry"), seen.Seen())...) })
	case event == store.RowDiscarded && seen.State != store.StateInProgress:
		return person(func() error { return errors.Join(h.inbox().Discard(h.t.context(), act("discard"), seen.Seen())...) })
	case event == store.RowReleased && seen.State != store.StateInProgress:
		if person(func() error { return errors.Join(h.requeuer().Release(h.t.context(), act("release"), seen.Seen())...) }) {
			return true
		}
	}
	lost, err := h.leases().End(h.t.context(), []store.ClaimEnding{{Claim: c, Event: event}})
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
