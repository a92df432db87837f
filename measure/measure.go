// Package measure is what a consumer tells of itself in figures, beside the events that
// semel.Observer hears: what each batch took, and what is in hand. It knows no client
// library of metrics; who has one implements Meter over it.
package measure

import (
	"time"

	"github.com/semel-go/semel"
)

// Meter is a semel.Observer that measures, too: a consumer finds it by assertion among its
// observers. It is called once a batch, from the goroutine that carried it out, beside those
// of other batches, and must neither block nor keep what it is given.
type Meter interface {
	semel.Observer
	// Measure tells of a batch that is over.
	Measure(Batch)
}

// Batch says what a batch took. A time is 0 where the batch did not come so far.
type Batch struct {
	Consumer string
	// Messages are those of the batch, copies and claims among them.
	Messages int
	// Marking is what it took to open the transaction and to write its marks, with what they
	// waited for locks; Handling what its handlers took, and Committing the commit, with the
	// statements that handlers queued.
	Marking, Handling, Committing time.Duration
	// End says how it ended.
	End End
}

// End is how a batch ended. The set is closed.
type End uint8

// The ends of batches.
const (
	// Committed: its effects are there.
	Committed End = iota
	// RolledBack: nothing of it is, since one of its messages failed, or contention,
	// or the store.
	RolledBack
	// Unknown: nobody knows; its messages are marked again.
	Unknown
	// NotBegun: its transaction was not opened.
	NotBegun
)

// Ends are all of them, in their order.
func Ends() []End {
	return []End{Committed, RolledBack, Unknown, NotBegun}
}

// String is the end's word in metrics.
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

// Load is what a consumer has in hand.
type Load struct {
	// Messages are the deliveries and claims that have not been settled, Bytes what they
	// hold of memory. Oldest is how long ago the first of them came.
	Messages int
	Bytes    int64
	Oldest   time.Duration
	// Queued wait for a worker, Flying share a transaction, Held wait for a moment, such as
	// their next try, Riding wait for an earlier copy, and Settling are told to the source.
	// They add up to Messages.
	Queued, Flying, Held, Riding, Settling int
	// Lanes are those that the source gave, Paused those of them that wait for one of their
	// messages.
	Lanes, Paused int
	// Workers are all of the consumer's, Stuck those whose handler goes on after its timeout.
	Workers, Stuck int
	// Serial: batches run one at a time, because they contend with one another.
	Serial bool
}
