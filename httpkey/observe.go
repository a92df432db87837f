package httpkey

import (
	"time"

	"github.com/semel-go/semel/internal/enum"
)

// Fate says how a request was answered.
type Fate uint8

const (
	// Passed means that the request was not protected, because of its method (Config.Pass) or because it had
	// no key (Config.Optional).
	Passed Fate = iota + 1
	// Ran means that the handler ran and answered.
	Ran
	// Replayed means that the request got the answer of an earlier request with the same key.
	Replayed
	// Refused means that the handler did not run, or that its effect was rolled back; see Observation.Code.
	Refused
	// Unprotected means that the handler ran although the store is down (LeaseConfig.FailOpen).
	Unprotected
	// Finished means that a Completer ran the handler of an abandoned request.
	Finished
)

// String returns the name of the fate.
func (f Fate) String() string {
	return enum.Name([]string{Passed: "passed", Ran: "ran", Replayed: "replayed", Refused: "refused", Unprotected: "unprotected", Finished: "finished"}, f, "Fate")
}

// Observation describes the outcome of a request. Keys, callers and bodies are not included.
type Observation struct {
	Fate Fate
	// Code is the code of the problem document with which the request was answered, or "" if there was none.
	Code string
	// Kept reports that the answer is kept, so that repeated requests get it.
	Kept bool
	// Status is the status of the answer, or 0 with Passed.
	Status int
	// Took is the duration of the request, including its handler.
	Took time.Duration
	// Err, if not nil, is the error of the store or of the handler.
	Err error
	// Stack is the stack of a handler that panicked.
	Stack []byte
}

// outcome is the answer to a request, with the reason for the answer.
type outcome struct {
	fate    Fate
	answer  *answer
	problem *problem // why no handler answered
	stored  bool
	err     error
	stack   []byte
	abort   bool // the handler wants the connection to be closed
}

// newRefusal returns the outcome of a request that no handler answers.
func newRefusal(p *problem, err error) outcome { return outcome{fate: Refused, problem: p, err: err} }

// isInFlight reports whether another request with the same key is in progress.
func (o *outcome) isInFlight() bool { return o.problem != nil && o.problem.code == codeInFlight }
