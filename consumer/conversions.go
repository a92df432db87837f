package consumer

import (
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/machine"
)

// endOf is the machine's ending by its name here.
func endOf(e machine.Ending) contract.End {
	switch e {
	case machine.EndApplied:
		return contract.EndApplied
	case machine.EndDuplicate:
		return contract.EndDuplicate
	case machine.EndConflict:
		return contract.EndConflict
	case machine.EndParked:
		return contract.EndParked
	case machine.EndDeadLettered:
		return contract.EndDeadLettered
	case machine.EndDiscarded:
		return contract.EndDiscarded
	case machine.EndSkipped:
		return contract.EndSkipped
	}
	return contract.NotEnded
}
