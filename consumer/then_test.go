package consumer

import (
	"testing"

	"github.com/semel-go/semel/internal/machine"
)

func TestEveryEndingOfAPolicyIsTheMachinesOfThatName(t *testing.T) {
	want := map[Then]machine.Then{
		ThenPark: machine.ThenPark, ThenHalt: machine.ThenHalt, ThenDiscard: machine.ThenDiscard,
		ThenAcceptFirst: machine.ThenAcceptFirst, ThenRetry: machine.ThenRetry, ThenDeadLetter: machine.ThenDeadLetter,
	}
	for then, ending := range want {
		if got := then.ending(); got != ending {
			t.Errorf("%s is the machine's %d, not %d", then, got, ending)
		}
	}
	// A value that is added must get a line in the switch and here.
	if next := Then(len(want)); next.String() != "Then(6)" {
		t.Errorf("%s is not tested", next)
	}
}
