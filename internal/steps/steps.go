// Package steps decides what of a message's steps is done and which comes next, from
// what its row says. It does nothing itself, so that the simulator proves the rules that
// consumers follow.
package steps

import (
	"fmt"
	"slices"

	"github.com/semel-go/semel/store"
)

// Fit says why a row whose steps are not the first of these names is to be set aside, and
// what to do; nil if they are, and one is left.
func Fit(names []string, done []store.StepDone) error {
	if len(done) == 0 {
		return nil
	}
	for i := range done {
		if i == len(names) || names[i] != done[i].Name {
			return fmt.Errorf("its steps %s are completed, and this consumer's are %q: nobody can tell what is left; deploy the steps in their old order and retry it, or discard it when a person has done the rest", quoted(done), names)
		}
	}
	if !Left(names, done) {
		return fmt.Errorf("its steps %s are completed, and it waited for another, which this consumer does not have; deploy the step that is missing and retry it, or discard it when a person has done the rest", quoted(done))
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

// Next is which step of a row that fits is to run, counted from 0.
func Next(done []store.StepDone) int { return len(done) }

// Left reports whether a step is left.
func Left(names []string, done []store.StepDone) bool { return len(done) < len(names) }

// With are those that are done and one more, in memory of their own: a run that is taken
// back leaves the list of the row as it was.
func With(done []store.StepDone, name string, output []byte) []store.StepDone {
	return append(slices.Clip(done), store.StepDone{Name: name, Output: slices.Clone(output)})
}
