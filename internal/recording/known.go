package recording

import (
	"slices"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// externalState is the state outside of the machine to which events refer: the current batch of each worker, and the
// settlements (acks, nacks, dead letters) whose result is not known. A recording and a replay update this state in the
// same way.
type externalState struct {
	Machine *machine.Machine
	// Flights contains the current batch of each worker. Under contains the Settle actions without a
	// response, the oldest first.
	Flights []*machine.Flight
	Under   []*machine.Settle
}

// step updates the state after a step.
func (k *externalState) step(e machine.Event, actions []machine.Action) {
	switch e := e.(type) {
	case machine.Marked:
		if e.Class != store.ClassNone {
			k.endFlight(e.Flight)
		}
	case machine.Ended:
		k.endFlight(e.Flight)
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

func (k *externalState) endFlight(f *machine.Flight) {
	if k.Flights[f.Worker] == f {
		k.Flights[f.Worker] = nil
	}
}
