package admin

import (
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

func TestARowOfANewerReleaseIsNotActedOn(t *testing.T) {
	t.Run("trap_T104_the_refusal_names_the_release", func(t *testing.T) {
		for _, state := range []store.RowState{"VALIDATED", "OUTCOME_UNKNOWN", "FUTURE", ""} {
			if state.Known() {
				t.Fatalf("%s is known", state)
			}
			for e := range RowReopened + 1 {
				if err := MayAct(e, &store.StoredRow{Number: 1, State: state}, true); !errors.Is(err, semel.ErrState) || !strings.Contains(err.Error(), "newer release") {
					t.Errorf("%v of a row that is %q: %v", e, state, err)
				}
			}
		}
	})
}
