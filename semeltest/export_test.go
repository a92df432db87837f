package semeltest

import "testing"

// Found is what a subtest found.
type Found struct {
	Subtest string
	// Err is nil, what was found, or, with Skipped, why the subtest was not run.
	Err     error
	Skipped bool
}

// Examine does what Run does, without subtests, and returns what they found.
func Examine[Tx any](t *testing.T, start func(t *testing.T) Handler[Tx]) (all []Found) {
	s := &session[Tx]{start: start}
	for _, c := range cases[Tx]() {
		err := s.run(t, c)
		_, skipped := err.(*notRun)
		all = append(all, Found{c.name, err, skipped})
	}
	return all
}
