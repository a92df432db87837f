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

	// markAs says how the next batch marks the item. The row gets the reason and the errors from the field
	// failure.
	markAs   As
	runAlone bool
	// newer means that ReportNewer was made for the item.
	newer bool
	// unknown means that the outcome of the item's last commit is unknown. If the store later finds a marker, the
	// marker counts as written by the commit with the unknown outcome.
	unknown bool
	// rolledBack means that the handler succeeded and was rolled back because of another message.
	rolledBack bool
	// nextRunCounts means that the next run counts as another attempt. wasTried means that the first attempt has been
	// made.
	nextRunCounts, wasTried bool
	// copied means that the dead letter has been written.
	copied bool

	riders  *riders  // nil if no copy ever waited for the item
	failure *failure // nil if the item has not failed
	trouble *trouble // nil if the item never waited for other transactions

	previous, next *Item // neighbours in the live list
}

// failure contains the reason why an item is not simply applied. The types failure and trouble are allocated
// separately, because few items need them, and every waiting item uses memory.
type failure struct {
	reason      semel.Reason
	first, last error
	after       Time // delay of an item that is stored in the inbox
}

// failureOrZero returns the item's failure, or the zero value if the item has not failed.
func (it *Item) failureOrZero() failure {
	if it.failure == nil {
		return failure{}
	}
	return *it.failure
}

// ensureFailure returns the item's failure for writing, and creates the failure if the item has none.
func (it *Item) ensureFailure() *failure {
	if it.failure == nil {
		it.failure = &failure{}
	}
	return it.failure
}

// trouble records the failures and waits of an item that were caused, or seem to be caused, by another transaction or
// the store.
type trouble struct {
	busy int // number of consecutive waits
	// waitStart is the start of the wait. nextReport is the time of the next report about the wait.
	waitStart, nextReport Time
	waits                 ReportKind // kind of the reports about the wait
	unknown               error      // while the state is awaited: describes the marker that a newer release wrote
	suspicion             suspicion
	// conflicted reports that the last commit, whose outcome is unknown, should have written the row of a conflict, and
	// no marker.
	conflicted bool
}

// doubt records that the outcome of an item's commit is unknown, and whether that commit should have written
// the row of a conflict.
func (it *Item) doubt(conflict bool) {
	it.unknown = true
	if conflict || it.trouble != nil {
		it.ensureTrouble().conflicted = conflict
	}
}

// conflicted reports whether the commit with unknown outcome should have written the row of a conflict.
func (it *Item) conflicted() bool { return it.trouble != nil && it.trouble.conflicted }

// ensureTrouble returns the item's trouble for writing, and creates it if the item has none.
func (it *Item) ensureTrouble() *trouble {
	if it.trouble == nil {
		it.trouble = &trouble{}
	}
	return it.trouble
}

// key returns the identity. All copies of a message have the same key.
func (it *Item) key() Name { return Name{it.Source, it.Identity} }

// ridesForFormer reports whether a waiting message may still be applied after the first message (carrier), for which it
// waits, was applied. The waiting message may be applied if it is not a copy of the carrier, or if it has other content
// and a previous identity. If the waiting message has other content, the carrier may be a conflict with its own
// previous identity, so that the carrier's identity becomes free again.
func (it *Item) ridesForFormer() bool {
	return it.key() != it.carrier.key() || it.Former != nil && it.Print != it.carrier.Print
}

// Arrival returns the item's number in the order of arrival, or 0 before the item is added.
func (it *Item) Arrival() uint64 { return it.arrival }

// Attempt returns the number of the handler's next or current run for this item.
func (it *Item) Attempt() int { return int(it.attempts) + 1 }

// Outcome returns the outcome that is written to the marker.
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
