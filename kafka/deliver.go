package kafka

import (
	"sync"
	"time"

	"github.com/semel-go/semel/kafka/internal/hook"
	"github.com/semel-go/semel/source"
)

// deliveries are what the consumer is given of lanes, and what becomes of it.
type deliveries struct {
	budget *hook.Budget
	lanes  *lanes
	intake *intake

	// mu guards the rest; the lanes' lock is taken under it.
	mu   sync.Mutex
	turn int // in the order of lanes
	// full says that nothing more may be delivered until something is settled.
	full bool
}

// tooMuchHidden reports whether nothing may be delivered until something is
// settled: of a record that is too large the consumer counts what it sees, and
// its dead letter needs all of it. Called with lanes.mu held.
func (d *deliveries) tooMuchHidden(all []*lane) bool {
	var hidden int64
	for _, l := range all {
		hidden += l.hidden
	}
	return hidden >= d.budget.Most() && hidden > 0
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
func (d *deliveries) take(most source.Bound) (f found) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lanes.with(func(all []*lane) {
		now := time.Now()
		if d.full = d.tooMuchHidden(all); !d.full {
			for range all {
				d.turn = (d.turn + 1) % len(all)
				all[d.turn].take(&f, most, now)
			}
		}
		d.intake.resumeInBudget(all, len(f.records) == 0)
		f.enough = d.full || handedBackOf(all) >= mostBack
	})
	return f
}

// handedBackOf counts what waits to be delivered again.
func handedBackOf(all []*lane) (n int) {
	for _, l := range all {
		n += len(l.back)
	}
	return n
}

func (l *lane) take(f *found, most source.Bound, now time.Time) {
	if !l.blocked() {
		l.takeBack(f, most, now)
		l.takeReady(f, most, now)
	}
}

// add reports whether a record fits, the first one always, and takes it.
func (f *found) add(r *record, most source.Bound, now time.Time) bool {
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

func (l *lane) takeBack(f *found, most source.Bound, now time.Time) {
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
	clear(l.back[len(kept):])
	l.back = kept
}

func (l *lane) takeReady(f *found, most source.Bound, now time.Time) {
	n := 0
	for n < len(l.ready) && f.add(l.ready[n], most, now) {
		l.ready[n] = nil
		n++
	}
	l.ready = l.ready[n:]
}
