// Package steps computes which steps of a message are completed and which step runs next, from the message's row.
// The package has no side effects, so that the simulator can test the same rules that consumers follow.
package steps

import (
	"fmt"
	"slices"

	"github.com/semel-go/semel/store"
)

// Fit returns nil if the completed steps (the parameter done) are the first steps of the consumer (the parameter
// names), and at least one step is left. In all other cases, Fit returns an error that says why the row must be parked,
// and what to do.
func Fit(names []string, done []store.StepDone) error {
	if len(done) == 0 {
		return nil
	}
	for i := range done {
		if i == len(names) || names[i] != done[i].Name {
			return fmt.Errorf("its steps %s are completed, but the steps of this consumer are %q, so it is unknown which are left; deploy the steps in their old order and retry it, or discard it when a person has done the rest", quoted(done), names)
		}
	}
	if !Left(names, done) {
		return fmt.Errorf("its steps %s are completed, and the row waits for a further step, which this consumer does not have; deploy the step that is missing and retry it, or discard it when a person has done the rest", quoted(done))
	}
	return nil
}

func quoted(done []store.StepDone) string {
	names := make([]string, len(done))
	for i := range done {
		names[i] = done[i].Name
	}
	return fmt.Sprintf("%q", names)
}

// Next returns the index of the step that runs next. The row must fit (see Fit).
func Next(done []store.StepDone) int { return len(done) }

// Left reports whether a step is left.
func Left(names []string, done []store.StepDone) bool { return len(done) < len(names) }

// With returns a new list that contains the completed steps (the parameter done) and one more step. With does not
// change the old list, so that the row still has its old list if the run is rolled back.
func With(done []store.StepDone, name string, output []byte) []store.StepDone {
	return append(slices.Clip(done), store.StepDone{Name: name, Output: slices.Clone(output)})
}
