package sqlform

import (
	"testing"

	"github.com/semel-go/semel/contract"
)

func TestARowWhoseContentWasMarkedWhileAnotherTookEffect(t *testing.T) {
	t.Run("law_16_is_not_completed", func(t *testing.T) {
		applied := Marker{Outcome: int64(contract.Applied), Version: 1, Sum: []byte{1}}
		twin := Twin{Number: 2, State: contract.StateCompleted, Conflict: true, Version: 1, Sum: []byte{2}}
		if e, why := Over(true, applied, true, []Twin{twin}); e != contract.RowDiscarded || why == "" {
			t.Errorf("it is %s: %q, want discarded", e, why)
		}
		twin.State = contract.StateDiscarded
		if e, _ := Over(true, applied, true, []Twin{twin}); e != contract.RowCompleted {
			t.Errorf("where no other took effect it is %s, want completed", e)
		}
	})
}
