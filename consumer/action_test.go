package consumer

import (
	"testing"

	"github.com/semel-go/semel/internal/machine"
)

func TestEveryEndingOfAPolicyIsTheMachinesOfThatName(t *testing.T) {
	want := map[Action]machine.Ending{
		ActionPark: machine.EndPark, ActionHalt: machine.EndHalt, ActionDiscard: machine.EndDiscard,
		ActionKeepFirst: machine.EndKeepFirst, ActionRetry: machine.EndRetry, ActionDeadLetter: machine.EndDeadLetter,
	}
	for then, ending := range want {
		if got := then.ending(); got != ending {
			t.Errorf("%s is the machine's %d, not %d", then, got, ending)
		}
	}
	// A new action needs a case in Action.String and an entry in want.
	if next := Action(len(want)); next.String() != "Action(6)" {
		t.Errorf("%s is not tested", next)
	}
}
