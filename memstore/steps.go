package memstore

import (
	"bytes"
	"slices"

	"github.com/semel-go/semel/store"
)

// steps are steps that nobody else can change.
func steps(done []store.StepDone) []store.StepDone {
	done = slices.Clone(done)
	for i := range done {
		done[i].Output = bytes.Clone(done[i].Output)
	}
	return done
}
