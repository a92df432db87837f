package assembly

import (
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
)

func TestTheHealthOfAConsumerWhoseRunHasEnded(t *testing.T) {
	broken := errors.New("no table")
	for name, c := range map[string]struct {
		err       error
		continues bool
		alive     bool
	}{
		"by_an_error_with_on_failure_exit_it_is_not_alive":             {broken, false, false},
		"by_an_error_with_on_failure_continue_it_is_alive":             {broken, true, true},
		"by_a_message_that_halted_it_it_is_alive_also_with_exit":       {semel.ErrHalted, false, true},
		"because_the_store_is_behind_its_broker_it_is_alive_with_exit": {semel.ErrBehind, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Runner{Consumer: failedConsumer{c.err}, continueOnFailure: c.continues}
			r.outcome.set(c.err)
			if alive, why := r.Alive(); alive != c.alive || alive == strings.Contains(why, c.err.Error()) {
				t.Errorf("alive: %v, %q", alive, why)
			}
			if ready, why := r.Ready(); ready || !strings.Contains(why, c.err.Error()) {
				t.Errorf("ready: %v, %q", ready, why)
			}
		})
	}
}
