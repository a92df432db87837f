package machine

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// progress is the machine's own part of an Item.
type progress struct {
	arrival uint64
	placement
	lane *lane
	line *line // nil: it is skipped

	// as is how the next flight marks it; its reason and errors go into the row.
	as    As
	alone bool
	// newer: it is told that a newer release wrote its marker.
	newer bool
	// unknown: the outcome of its last commit is unknown, so that a marker
	// found there is taken for its own.
	unknown bool
	// rolledBack: its handler ran well and a neighbour undid it.
	rolledBack bool
	// charged: its next run is another attempt; tried: it has had its first.
	charged, tried bool
	// copied: its dead letter is there.
	copied bool

	riders  *riders  // nil: it has had none
	failure *failure // nil: none
	trouble *trouble // nil: it has met none

	previous, next *Item // of the live list
}

// failure is why an item does not simply take effect. Few items have one, and
// each is held in memory while it waits: so it is apart, as trouble is.
type failure struct {
	reason      semel.Reason
	first, last error
	after       Time // of one that waits in the inbox: for how long
}

// failed returns the item's failure, empty where there is none.
func (it *Item) failed() failure {
	if it.failure == nil {
		return failure{}
	}
	return *it.failure
}

// failing returns the item's failure, to be written.
func (it *Item) failing() *failure {
	if it.failure == nil {
		it.failure = &failure{}
	}
	return it.failure
}

// trouble is what an item has met that others or the store are to blame for, or
// seem to be.
type trouble struct {
	busy int // waits in a row
	// since is when it first waited for others, tellAt when that is told next.
	since, tellAt Time
	waits         ReportKind // what it was told, or will be, to wait for
	unknown       error      // while it is awaited: what a newer release wrote, for people
	suspicion     suspicion
	// conflicted, of one whose last commit is of unknown outcome: it was to write the row
	// of a conflict, and no mark.
	conflicted bool
}

// doubt remembers of an item whose commit is of unknown outcome whether that was to write a
// conflict's row.
func (it *Item) doubt(conflict bool) {
	it.unknown = true
	if conflict || it.trouble != nil {
		it.troubled().conflicted = conflict
	}
}

// conflicted reports whether what is in doubt is a conflict's row.
func (it *Item) conflicted() bool { return it.trouble != nil && it.trouble.conflicted }

// troubled returns what is known of an item's trouble, to be written.
func (it *Item) troubled() *trouble {
	if it.trouble == nil {
		it.trouble = &trouble{}
	}
	return it.trouble
}

// key is what copies share.
func (it *Item) key() Name { return Name{it.Source, it.Identity} }

// ridesForFormer reports whether an item that rides may take effect although its carrier
// does: it is no copy of it, or of another content, and where the carrier is a conflict
// with its former identity, its own one is free again.
func (it *Item) ridesForFormer() bool {
	return it.key() != it.carrier.key() || it.Former != nil && it.Print != it.carrier.Print
}

// Arrival is the item's number in the order of arrival, 0 before it is taken in.
func (it *Item) Arrival() uint64 { return it.arrival }

// Attempt is the number of the handler's next or present run for this item.
func (it *Item) Attempt() int { return int(it.attempts) + 1 }

// Outcome is what the marker says that a mark writes.
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

// liveList holds every item that has not gone, by arrival.
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
