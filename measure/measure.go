// Package measure defines the figures that a consumer reports in addition to the events of
// semel.Observer: the duration of each batch, and the load of the consumer. The package depends on no
// metrics library; implement Meter to connect one.
package measure

import (
	"time"

	"github.com/semel-go/semel"
)

// Meter is a semel.Observer that also receives the durations of batches. A consumer finds it among its
// observers by type assertion.
type Meter interface {
	semel.Observer
	// Measure is called once for each batch that has ended, from the goroutine of the batch and
	// concurrently with other batches. Measure must not block.
	Measure(Batch)
}

// Batch has the durations of one batch. A duration is 0 if the batch did not reach that step.
type Batch struct {
	Consumer string
	// Messages counts the messages of the batch, including copies and claims.
	Messages int
	// Marking is the time to begin the transaction and to write the markers, including waits for
	// locks. Handling is the time of the handlers. Committing is the time of the commit, including
	// statements that handlers queued.
	Marking, Handling, Committing time.Duration
	// End is how the batch ended.
	End End
}

// End is how a batch ended. No values will be added.
type End uint8

// The ends of batches.
const (
	// Committed: the batch committed.
	Committed End = iota
	// RolledBack: the batch was rolled back, because a message failed, transactions contended, or the
	// store failed.
	RolledBack
	// Unknown: the answer of the commit was lost; the markers are read again.
	Unknown
	// NotBegun: the transaction could not begin.
	NotBegun
)

// Ends returns all values of End, in order.
func Ends() []End {
	return []End{Committed, RolledBack, Unknown, NotBegun}
}

// String returns the value of the label in metrics.
func (e End) String() string {
	switch e {
	case Committed:
		return "committed"
	case RolledBack:
		return "rolled back"
	case Unknown:
		return "unknown"
	}
	return "not begun"
}

// Load describes the messages that a consumer has in memory.
type Load struct {
	// Messages counts deliveries and claims that are not acked yet, Bytes their memory. Oldest is the
	// time since the first of them arrived.
	Messages int
	Bytes    int64
	Oldest   time.Duration
	// Queued messages wait for a worker, Flying are in a transaction, Held wait for a time such as
	// their next attempt, Riding wait for an earlier copy, Settling are being acked. The five add up to
	// Messages.
	Queued, Flying, Held, Riding, Settling int
	// Lanes counts the lanes that the source assigned, Paused those that wait for one of their
	// messages.
	Lanes, Paused int
	// Workers counts all workers, Stuck those whose handler is still running after its timeout.
	Workers, Stuck int
	// Serial reports that batches run one at a time, because they contend with each other.
	Serial bool
}
