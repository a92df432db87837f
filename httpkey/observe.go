package httpkey

import (
	"time"

	"github.com/semel-go/semel/internal/enum"
)

// Fate is what became of a request.
type Fate uint8

// The fates.
const (
	// Passed: it was not to be protected, by its method (Config.Pass) or, with Config.Optional,
	// without key.
	Passed Fate = iota + 1
	// Ran: its handler ran, and answered it.
	Ran
	// Replayed: another request of the same key had been answered, and it got that answer.
	Replayed
	// Refused: no handler ran for it, or its effect was rolled back; Observation.Code says why.
	Refused
	// Unprotected: the store is down, and the handler ran all the same (LeaseConfig.FailOpen).
	Unprotected
	// Finished: no client was there, and a Completer had its handler run.
	Finished
)

// String is the fate's name.
func (f Fate) String() string {
	return enum.Name([]string{Passed: "passed", Ran: "ran", Replayed: "replayed", Refused: "refused", Unprotected: "unprotected", Finished: "finished"}, f, "Fate")
}

// Observation is what became of a request. It has no key, no caller and no body.
type Observation struct {
	Fate Fate
	// Code is that of the problem which answered it; empty if none did.
	Code string
	// Kept says that its answer is kept, and repeated from now on.
	Kept bool
	// Status is that of the answer; 0 with Passed.
	Status int
	// Took is how long it was here, with its handler.
	Took time.Duration
	// Err, if not nil, is what the store said, or how the handler failed.
	Err error
	// Stack, if the handler panicked, is where.
	Stack []byte
}

// outcome is what a request is answered with.
type outcome struct {
	fate    Fate
	answer  *answer
	problem *problem // why there is no answer of a handler
	kept    bool
	err     error
	stack   []byte
	abort   bool // the handler wants the connection cut
}

// refused is the outcome of a request that no handler answers.
func refused(p *problem, err error) outcome { return outcome{fate: Refused, problem: p, err: err} }

// inFlight reports whether another request of the same key is under way.
func (o *outcome) inFlight() bool { return o.problem != nil && o.problem.code == codeInFlight }
