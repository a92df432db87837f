package recording

import (
	"slices"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// known is what stands outside of the machine and events refer to: flights by their
// workers, and what the broker is being told. Who records and who replays keep it alike.
type known struct {
	Machine *machine.Machine
	// Flights are those under way; Under are the Settles without an answer, by their age.
	Flights []*machine.Flight
	Under   []*machine.Settle
}

// step brings it behind a step.
func (k *known) step(e machine.Event, actions []machine.Action) {
	switch e := e.(type) {
	case machine.Marked:
		if e.Class != store.ClassNone {
			k.land(e.Flight)
		}
	case machine.Ended:
		k.land(e.Flight)
	case machine.Settled:
		if i := slices.Index(k.Under, e.Settle); i >= 0 {
			k.Under = slices.Delete(k.Under, i, i+1)
		}
	}
	for _, a := range actions {
		switch a := a.(type) {
		case machine.Begin:
			k.Flights[a.Flight.Worker] = a.Flight
		case *machine.Settle:
			k.Under = append(k.Under, a)
		}
	}
}

func (k *known) land(f *machine.Flight) {
	if k.Flights[f.Worker] == f {
		k.Flights[f.Worker] = nil
	}
}
