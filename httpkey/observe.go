package httpkey

import (
	"time"

	"github.com/semel-go/semel/internal/enum"
)

// Fate is the outcome of a request.
type Fate uint8

// The fates.
const (
	// Passed: the request was not protected, by its method (Config.Pass) or because it had no key
	// (Config.Optional).
	Passed Fate = iota + 1
	// Ran: the handler ran and answered.
	Ran
	// Replayed: the request got the answer of an earlier request with the same key.
	Replayed
	// Refused: the handler did not run, or its effect was rolled back; see Observation.Code.
	Refused
	// Unprotected: the handler ran although the store is down (LeaseConfig.FailOpen).
	Unprotected
	// Finished: a Completer ran the handler of an abandoned request.
	Finished
)

// String returns the name of the fate.
func (f Fate) String() string {
	return enum.Name([]string{Passed: "passed", Ran: "ran", Replayed: "replayed", Refused: "refused", Unprotected: "unprotected", Finished: "finished"}, f, "Fate")
}

// Observation describes the outcome of a request. Keys, callers and bodies are not included.
type Observation struct {
	Fate Fate
	// Code is the code of the problem document that answered the request; "" if there was none.
	Code string
	// Kept reports that the answer is kept and copies will get it.
	Kept bool
	// Status is the status of the answer; 0 with Passed.
	Status int
	// Took is the duration of the request, including its handler.
	Took time.Duration
	// Err, if not nil, is the error of the store or of the handler.
	Err error
	// Stack is the stack of a handler that panicked.
	Stack []byte
}

// outcome is the answer to a request, and how it came about.
type outcome struct {
	fate    Fate
	answer  *answer
	problem *problem // why there is no answer of a handler
	kept    bool
	err     error
	stack   []byte
	abort   bool // the handler wants the connection cut
}

// refused returns the outcome of a request that no handler answers.
func refused(p *problem, err error) outcome { return outcome{fate: Refused, problem: p, err: err} }

// inFlight reports whether another request with the same key is in progress.
func (o *outcome) inFlight() bool { return o.problem != nil && o.problem.code == codeInFlight }
