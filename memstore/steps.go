package memstore

import (
	"bytes"
	"slices"

	"github.com/semel-go/semel/contract"
)

// MaxOutput implements contract.StepWriter.
func (s *Store) MaxOutput() int { return contract.MaxStepOutput }

// steps are steps that nobody else can change.
func steps(done []contract.StepDone) []contract.StepDone {
	done = slices.Clone(done)
	for i := range done {
		done[i].Output = bytes.Clone(done[i].Output)
	}
	return done
}
