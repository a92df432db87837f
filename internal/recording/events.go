package recording

import (
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// The kinds of events, in the file.
const (
	kindGiven byte = iota + 1
	kindRevoking
	kindLost
	kindFetched
	kindClaimed
	kindDue
	kindMarked
	kindRan
	kindStuck
	kindEnded
	kindSettled
	kindTimer
	kindStop
)

// eventWriter writes events. What deliveries mostly have in common with the one before
// is written once.
type eventWriter struct {
	writer
	known *known
	last  *machine.Item
}

func (w *eventWriter) event(e machine.Event) {
	switch e := e.(type) {
	case machine.Given:
		w.lane(kindGiven, e.Lane)
	case machine.Revoking:
		w.lane(kindRevoking, e.Lane)
	case machine.Lost:
		w.lane(kindLost, e.Lane)
	case machine.Fetched:
		w.byte(kindFetched)
		w.uint(bit(e.End, 0) | bit(e.Failed, 1) | bit(e.Unanswered, 2) | bit(e.More, 3) | bit(e.Err != nil, 4))
		w.items(e.Items)
	case machine.Claimed:
		w.byte(kindClaimed)
		w.uint(bit(e.Failed, 0) | bit(e.Err != nil, 1))
		w.time(e.Later)
		w.items(e.Items)
	case machine.Marked:
		w.marked(e)
	case machine.Ran:
		w.ran(e)
	case machine.Stuck:
		w.byte(kindStuck)
		w.flight(e.Flight)
		w.int(int64(slices.IndexFunc(e.Flight.Entries, func(en machine.Entry) bool { return en.Item == e.Item })))
		w.uint(bit(e.Committing, 0))
	case machine.Ended:
		w.ended(e)
	case machine.Settled:
		w.byte(kindSettled)
		w.int(int64(slices.Index(w.known.Under, e.Settle)))
		w.list(e.Left)
		w.uint(w.failed(e.Err))
	case machine.Due:
		w.byte(kindDue)
	case machine.Timer:
		w.byte(kindTimer)
	case machine.Stop:
		w.byte(kindStop)
	}
}

func (w *eventWriter) lane(kind byte, l source.Lane) {
	w.byte(kind)
	w.string(l.ID)
	w.uint(l.Epoch)
}

// flight names one by its worker. One that is over is told from the one that is there now.
func (w *eventWriter) flight(f *machine.Flight) {
	w.uint(uint64(f.Worker)<<1 | bit(w.known.Flights[f.Worker] != f, 0))
}

// What an item has, as bits.
const (
	sameLane = 1 << iota
	sameSource
	hasPrint
	hasRefusal
	hasFormer
	hasVersion
	hasClaim
)

func (w *eventWriter) items(all []*machine.Item) {
	w.uint(uint64(len(all)))
	for _, it := range all {
		w.item(it)
		w.last = it
	}
}

func (w *eventWriter) item(it *machine.Item) {
	var has byte
	if w.last != nil && w.last.Lane == it.Lane {
		has |= sameLane
	}
	if w.last != nil && w.last.Source == it.Source {
		has |= sameSource
	}
	if it.Print != (semel.Fingerprint{}) {
		has |= hasPrint
	}
	has |= byte(bit(it.Refused != nil, 3) | bit(it.Former != nil, 4) | bit(it.Version != nil, 5) | bit(it.Claim != nil, 6))
	w.byte(has)
	if has&sameLane == 0 {
		w.string(it.Lane.ID)
		w.uint(it.Lane.Epoch)
	}
	if has&sameSource == 0 {
		w.secret(it.Source)
	}
	w.secret(it.Identity)
	if has&hasPrint != 0 {
		w.print(it.Print)
	}
	w.int(int64(it.Before))
	w.fixed(it.Route)
	w.uint(uint64(it.Size))
	if r := it.Refused; r != nil {
		w.reason(r.Reason)
		w.uint(w.failed(r.Why) | bit(r.Foreign, 1) | bit(r.Unversioned, 2))
	}
	if f := it.Former; f != nil {
		w.secret(f.Source)
		w.secret(f.Identity)
	}
	if v := it.Version; v != nil {
		w.secret(v.Stream)
		w.int(v.Number)
	}
	if c := it.Claim; c != nil {
		w.int(int64(c.Attempts))
		w.uint(bit(c.Suspect, 0) | bit(c.Blocked, 1))
		w.time(c.Until)
	}
}

func (w *eventWriter) marked(e machine.Marked) {
	w.byte(kindMarked)
	w.flight(e.Flight)
	w.byte(byte(e.Class))
	w.uint(bit(e.CopyBusy, 0) | bit(e.Err != nil, 1))
	w.uint(uint64(len(e.Verdicts)))
	for _, v := range e.Verdicts {
		kind := v.Kind
		if (v == store.Verdict{Kind: kind}) {
			w.byte(byte(kind))
			continue
		}
		w.byte(byte(kind) | more)
		w.uint(bit(v.Known, 0) | bit(v.Former, 1) | bit(v.Ahead, 2))
		w.int(int64(v.Was))
		w.int(v.Missing)
	}
}

// more, in a verdict's kind, says that more follows.
const more = 0x80

func (w *eventWriter) ran(e machine.Ran) {
	w.byte(kindRan)
	w.flight(e.Flight)
	w.int(int64(e.Done))
	f := &e.Failure
	failed := *f != machine.Failure{}
	w.uint(bit(e.Failed, 0) | bit(e.Whole, 1) | bit(failed, 2) | bit(f.Free, 3) | bit(f.Outside, 4) | bit(f.Err != nil, 5))
	w.list(e.Stepped)
	if failed {
		w.byte(byte(f.Class))
		w.byte(byte(f.Decision))
		w.time(f.After)
		w.reason(f.Reason)
	}
}

func (w *eventWriter) ended(e machine.Ended) {
	w.byte(kindEnded)
	w.flight(e.Flight)
	w.byte(byte(e.Outcome))
	w.byte(byte(e.Class))
	w.uint(bit(e.Outside, 0) | bit(e.Err != nil, 1) | bit(e.Freed, 2))
	w.int(int64(e.Culprit))
	w.byte(byte(e.Decision))
	w.time(e.After)
	w.reason(e.Reason)
	w.time(e.Until)
}
