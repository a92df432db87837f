package recording

import (
	"testing"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// Batches and Settle actions that have ended must be removed. If ended batches and actions were kept, they would use
// memory as long as the process runs, and each Settled event would search all of them.
func TestEndedFlightsAndSettlesAreForgotten(t *testing.T) {
	t.Run("trap_T81_a_settlement_when_it_is_answered_and_a_flight_when_it_lands", func(t *testing.T) {
		k := externalState{Flights: make([]*machine.Flight, 2)}
		first, second := &machine.Settle{}, &machine.Settle{}
		k.step(machine.Timer{}, []machine.Action{first, second})
		k.step(machine.Settled{Settle: first}, nil)
		if len(k.Under) != 1 || k.Under[0] != second {
			t.Errorf("%d are under way", len(k.Under))
		}
		k.step(machine.Settled{Settle: second}, nil)
		if len(k.Under) != 0 {
			t.Errorf("%d are under way, and all are answered", len(k.Under))
		}
		for _, lands := range []func(*machine.Flight) machine.Event{
			func(f *machine.Flight) machine.Event { return machine.Ended{Flight: f, Outcome: store.Committed} },
			func(f *machine.Flight) machine.Event { return machine.Marked{Flight: f, Class: store.ClassDown} },
		} {
			f := &machine.Flight{Worker: 1}
			if k.step(machine.Timer{}, []machine.Action{machine.Begin{Flight: f}}); k.Flights[1] != f {
				t.Fatal("it is not known")
			}
			if k.step(machine.Marked{Flight: f}, nil); k.Flights[1] != f {
				t.Error("it is forgotten while it flies")
			}
			if k.step(lands(f), nil); k.Flights[1] != nil {
				t.Error("it has landed, and is held")
			}
		}
	})
}
