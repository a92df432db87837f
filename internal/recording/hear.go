package recording

import (
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// errOther is met where a step that does not fit follows.
var errOther = errors.New("the recording is damaged: an event answers what was not decided")

// eventReader reads what an eventWriter wrote.
type eventReader struct {
	reader
	known *known
	last  *machine.Item
}

func (r *eventReader) event() machine.Event {
	switch kind := r.byte(); kind {
	case kindGiven:
		return machine.Given{Lane: r.lane()}
	case kindRevoking:
		return machine.Revoking{Lane: r.lane()}
	case kindLost:
		return machine.Lost{Lane: r.lane()}
	case kindFetched:
		b := r.uint()
		return machine.Fetched{End: has(b, 0), Failed: has(b, 1), Unanswered: has(b, 2), More: has(b, 3), Err: wasError(has(b, 4)), Items: r.items()}
	case kindClaimed:
		b, later := r.uint(), r.time()
		return machine.Claimed{Failed: has(b, 0), Err: wasError(has(b, 1)), Later: later, Items: r.items()}
	case kindDue:
		return machine.Due{}
	case kindMarked:
		return r.marked()
	case kindRan:
		return r.ran()
	case kindStuck:
		return r.stuck()
	case kindEnded:
		return r.ended()
	case kindSettled:
		return r.settled()
	case kindTimer:
		return machine.Timer{}
	case kindStop:
		return machine.Stop{}
	default:
		r.fail(fmt.Errorf("the recording is damaged, or of a newer release: it has an event of kind %d", kind))
		return machine.Timer{}
	}
}

func has(bits uint64, n int) bool { return bits>>n&1 == 1 }

func (r *eventReader) lane() source.Lane {
	id := r.string()
	return source.Lane{ID: id, Epoch: r.uint()}
}

func (r *eventReader) flight() *machine.Flight {
	n := r.uint()
	worker := n >> 1
	if worker >= uint64(len(r.known.Flights)) {
		r.fail(errCut)
		return &machine.Flight{}
	}
	if f := r.known.Flights[worker]; n&1 == 0 && f != nil {
		return f
	}
	return &machine.Flight{Worker: int(worker)} // it was over
}

func (r *eventReader) items() []*machine.Item {
	var all []*machine.Item
	for range r.count() {
		r.last = r.item()
		all = append(all, r.last)
	}
	return all
}

func (r *eventReader) item() *machine.Item {
	it := &machine.Item{}
	what := uint64(r.byte())
	if what&(sameLane|sameSource) != 0 && r.last == nil {
		r.fail(errCut)
		return it
	}
	if what&sameLane != 0 {
		it.Lane = r.last.Lane
	} else {
		it.Lane = r.lane()
	}
	if what&sameSource != 0 {
		it.Source = r.last.Source
	} else {
		it.Source = r.string()
	}
	it.Identity = r.string()
	if what&hasPrint != 0 {
		it.Print = r.print()
	}
	it.Before, it.Route, it.Size = int32(r.int()), r.fixed(), int32(r.uint())
	if what&hasRefusal != 0 {
		it.Refused = &machine.Refusal{Reason: r.reason()}
		b := r.uint()
		it.Refused.Why, it.Refused.Foreign, it.Refused.Unversioned = wasError(has(b, 0)), has(b, 1), has(b, 2)
	}
	if what&hasFormer != 0 {
		it.Former = &machine.Name{Source: r.string()}
		it.Former.Identity = r.string()
	}
	if what&hasVersion != 0 {
		it.Version = &machine.Version{Stream: r.string()}
		it.Version.Number = r.int()
	}
	if what&hasClaim != 0 {
		it.Claim = &machine.Claim{Attempts: int(r.int())}
		b := r.uint()
		it.Claim.Suspect, it.Claim.Blocked, it.Claim.Until = has(b, 0), has(b, 1), r.time()
	}
	return it
}

func (r *eventReader) marked() machine.Event {
	e := machine.Marked{Flight: r.flight(), Class: store.Class(r.byte())}
	b := r.uint()
	e.CopyBusy, e.Err = has(b, 0), wasError(has(b, 1))
	for range r.count() {
		kind := r.byte()
		v := store.Verdict{Kind: store.VerdictKind(kind &^ more)}
		if kind&more != 0 {
			b := r.uint()
			v.Known, v.Former, v.Ahead = has(b, 0), has(b, 1), has(b, 2)
			v.Was, v.Missing = store.Outcome(r.int()), r.int()
		}
		e.Verdicts = append(e.Verdicts, v)
	}
	if n := len(e.Flight.Entries); r.err == nil && e.Class == store.ClassNone && len(e.Verdicts) != n {
		r.fail(errOther)
	}
	return e
}

func (r *eventReader) ran() machine.Event {
	e := machine.Ran{Flight: r.flight(), Done: int(r.int())}
	b := r.uint()
	e.Failed, e.Whole, e.Stepped = has(b, 0), has(b, 1), r.list()
	e.Free, e.Outside, e.Failure.Err = has(b, 3), has(b, 4), wasError(has(b, 5))
	if has(b, 2) {
		e.Class, e.Decision, e.After, e.Reason = store.Class(r.byte()), semel.Decision(r.byte()), r.time(), r.reason()
	}
	return e
}

func (r *eventReader) stuck() machine.Event {
	e := machine.Stuck{Flight: r.flight()}
	if i := r.int(); i >= 0 && i < int64(len(e.Flight.Entries)) {
		e.Item = e.Flight.Entries[i].Item
	}
	e.Committing = has(r.uint(), 0)
	return e
}

func (r *eventReader) ended() machine.Event {
	e := machine.Ended{Flight: r.flight(), Outcome: store.CommitOutcome(r.byte()), Class: store.Class(r.byte())}
	b := r.uint()
	e.Outside, e.Err, e.Freed = has(b, 0), wasError(has(b, 1)), has(b, 2)
	e.Culprit, e.Decision, e.After, e.Reason, e.Until = int(r.int()), semel.Decision(r.byte()), r.time(), r.reason(), r.time()
	return e
}

func (r *eventReader) settled() machine.Event {
	i := r.int()
	e := machine.Settled{Left: r.list(), Err: wasError(has(r.uint(), 0))}
	if i < 0 || i >= int64(len(r.known.Under)) {
		r.fail(errOther)
		return machine.Timer{}
	}
	e.Settle = r.known.Under[i]
	return e
}
