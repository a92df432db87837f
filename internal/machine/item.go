package machine

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// progress is the machine's private part of an Item.
type progress struct {
	arrival uint64
	placement
	lane *lane
	line *line // nil if the item is skipped

	// as is how the next flight marks the item. The row gets the reason and the errors of failure.
	as    As
	alone bool
	// newer: ReportNewer was made for the item.
	newer bool
	// unknown: the outcome of the item's last commit is unknown, so a marker that is found is taken for its own.
	unknown bool
	// rolledBack: the handler succeeded and was rolled back because of another message.
	rolledBack bool
	// charged: the next run is a further attempt. tried: the first attempt has been made.
	charged, tried bool
	// copied: the dead letter has been written.
	copied bool

	riders  *riders  // nil if it never had any
	failure *failure // nil if it has not failed
	trouble *trouble // nil if it never waited for others

	previous, next *Item // neighbours in the live list
}

// failure contains why an item is not simply applied. failure is allocated separately, like trouble, because few
// items have one and every item is in memory while it waits.
type failure struct {
	reason      semel.Reason
	first, last error
	after       Time // delay of an item that waits in the inbox
}

// failed returns the item's failure; empty if there is none.
func (it *Item) failed() failure {
	if it.failure == nil {
		return failure{}
	}
	return *it.failure
}

// failing returns the item's failure for writing, and creates it if there is none.
func (it *Item) failing() *failure {
	if it.failure == nil {
		it.failure = &failure{}
	}
	return it.failure
}

// trouble contains failures and waits of an item that others or the store cause, or seem to cause.
type trouble struct {
	busy int // number of waits in a row
	// since is the start of the wait for others, tellAt the time of the next report about it.
	since, tellAt Time
	waits         ReportKind // kind of the reports about the wait
	unknown       error      // while awaited: describes the newer release's marker
	suspicion     suspicion
	// conflicted, after a commit with unknown outcome, reports that the commit was to write the row of a conflict
	// and no mark.
	conflicted bool
}

// doubt records, for an item whose commit has an unknown outcome, whether that commit was to write a conflict's
// row.
func (it *Item) doubt(conflict bool) {
	it.unknown = true
	if conflict || it.trouble != nil {
		it.troubled().conflicted = conflict
	}
}

// conflicted reports whether the unknown commit was to write a conflict's row.
func (it *Item) conflicted() bool { return it.trouble != nil && it.trouble.conflicted }

// troubled returns the item's trouble for writing, and creates it if there is none.
func (it *Item) troubled() *trouble {
	if it.trouble == nil {
		it.trouble = &trouble{}
	}
	return it.trouble
}

// key returns the identity, which copies have in common.
func (it *Item) key() Name { return Name{it.Source, it.Identity} }

// ridesForFormer reports whether a rider may be applied although its carrier is: it is not a copy of the carrier,
// or has other content, and if the carrier is a conflict with its own previous identity, the carrier's identity is
// free again.
func (it *Item) ridesForFormer() bool {
	return it.key() != it.carrier.key() || it.Former != nil && it.Print != it.carrier.Print
}

// Arrival returns the item's number in the order of arrival; 0 before it is added.
func (it *Item) Arrival() uint64 { return it.arrival }

// Attempt returns the number of the handler's next or current run for this item.
func (it *Item) Attempt() int { return int(it.attempts) + 1 }

// Outcome returns the outcome that the mark writes to the marker.
func (a As) Outcome() store.Outcome {
	switch a {
	case AsParked, AsOverdue:
		return store.Parked
	case AsDiscarded:
		return store.Discarded
	case AsDeadLettered:
		return store.DeadLettered
	case AsReceived, AsWaiting, AsBlocked:
		return store.Waiting
	}
	return store.Applied
}

// liveList contains all items in memory, in order of arrival.
type liveList struct {
	head, tail *Item
	count      int
}

func (l *liveList) add(it *Item) {
	it.previous, it.next = l.tail, nil
	if l.tail == nil {
		l.head = it
	} else {
		l.tail.next = it
	}
	l.tail = it
	l.count++
}

func (l *liveList) remove(it *Item) {
	if it.previous == nil {
		l.head = it.next
	} else {
		it.previous.next = it.next
	}
	if it.next == nil {
		l.tail = it.previous
	} else {
		it.next.previous = it.previous
	}
	it.previous, it.next = nil, nil
	l.count--
}
