package kafka

import (
	"time"

	"github.com/semel-go/semel/contract"
)

// tooMuchHidden reports whether nothing may be delivered until something is
// settled: of a record that is too large the consumer counts what it sees, and
// its dead letter needs all of it. Called with lanes.mu held.
func (ls *lanes) tooMuchHidden() bool {
	var hidden int64
	for _, l := range ls.order {
		hidden += l.hidden
	}
	return hidden >= ls.budget.Most() && hidden > 0
}

// found is what there is to deliver, or when there may be something.
type found struct {
	records []*record
	bytes   int64
	due     time.Time
	// enough says that nothing may be polled.
	enough bool
	err    error
}

// mostBack is how many deliveries may be handed back before polling waits.
const mostBack = 10_000

// take takes what is ready: lanes take turns, and in a lane what was handed
// back and is due comes first.
func (ls *lanes) take(most contract.Bound) found {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var f found
	now := time.Now()
	ls.full = ls.tooMuchHidden()
	for range ls.order {
		if ls.full {
			break
		}
		ls.turn = (ls.turn + 1) % len(ls.order)
		if l := ls.order[ls.turn]; !l.blocked() {
			ls.back -= l.takeBack(&f, most, now)
			l.takeReady(&f, most, now)
		}
	}
	ls.resumeInBudget(len(f.records) == 0)
	f.enough = ls.back >= mostBack || ls.full
	return f
}

// add reports whether a record fits, the first one always, and takes it.
func (f *found) add(r *record, most contract.Bound, now time.Time) bool {
	if len(f.records) > 0 && (len(f.records) >= most.Messages || f.bytes+r.size > most.Bytes) {
		return false
	}
	f.bytes += r.size
	f.records = append(f.records, r)
	r.state, r.at = delivered, now
	r.lane.unsettled++
	r.lane.hidden += r.hidden
	r.lane.delivered = max(r.lane.delivered, r.after.offset)
	return true
}

func (l *lane) takeBack(f *found, most contract.Bound, now time.Time) int {
	kept := l.back[:0]
	for _, r := range l.back {
		switch {
		case r.state != handedBack:
		case r.at.After(now):
			if f.due.IsZero() || r.at.Before(f.due) {
				f.due = r.at
			}
			kept = append(kept, r)
		case !f.add(r, most, now):
			kept = append(kept, r)
		}
	}
	taken := len(l.back) - len(kept)
	clear(l.back[len(kept):])
	l.back = kept
	return taken
}

func (l *lane) takeReady(f *found, most contract.Bound, now time.Time) {
	n := 0
	for n < len(l.ready) && f.add(l.ready[n], most, now) {
		l.ready[n] = nil
		n++
	}
	l.ready = l.ready[n:]
}
