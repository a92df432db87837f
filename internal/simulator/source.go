package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// lane is a stream of the source.
type lane struct {
	id       string
	epoch    uint64
	log      []*delivery
	next     int // of a log: the next position to hand out
	held     bool
	owner    *process // with held: who has it
	revoking bool
	paused   bool
	answered bool // the machine has released it

	// of is the live lane that a replay reads again, stored how far it is settled as the
	// store has it; nil and 0 of a live lane. before is what comes before all that live
	// processes are given.
	of     *lane
	stored int
	before []*delivery
}

func (l *lane) current() source.Lane { return source.Lane{ID: l.id, Epoch: l.epoch} }

// simSource is the model of a source. It keeps what is not settled.
type simSource struct {
	queue bool
	lanes []*lane
	// dead counts the dead letters of each content.
	dead map[content]int
}

// content is what copies of one message share.
type content struct {
	id    string
	print semel.Fingerprint
}

// give starts a new epoch: what is not settled comes again; of a log
// everything from the first that is not settled.
func (l *lane) give(to *process) {
	l.epoch++
	l.owner = to
	l.held, l.revoking, l.paused, l.answered = true, false, false, false
	l.next = len(l.log)
	for i := len(l.log) - 1; i >= 0; i-- {
		d := l.log[i]
		d.out, d.returned, d.due = false, false, 0
		if l.of != nil { // whoever goes on knows what is stored, and nothing else
			d.settled = i < l.stored
		}
		if !d.settled {
			l.next = i
		}
	}
}

// leave ends the epoch.
func (l *lane) leave() { l.held, l.revoking = false, false }

func (s *simSource) find(id string) *lane {
	for _, l := range s.lanes {
		if l.id == id {
			return l
		}
	}
	return nil
}

// ready reports whether the lane could hand out d now.
func (s *simSource) ready(d *delivery, now time.Duration) bool {
	if d.produced > now || d.due > now {
		return false
	}
	if d.returned {
		return true
	}
	if s.queue {
		return !d.settled && !d.out
	}
	return d.position == d.lane.next
}

// any returns the next delivery that lane l can hand out to the process, or nil.
func (l *lane) any(s *simSource, p *process, now time.Duration) *delivery {
	if !l.held || l.paused || l.owner != p {
		return nil
	}
	for _, d := range l.log {
		if s.ready(d, now) {
			return d
		}
	}
	return nil
}

// hand hands d out.
func (s *simSource) hand(d *delivery) {
	if !s.queue && !d.returned {
		d.lane.next++
	}
	d.out, d.returned = true, false
	d.count++
}

// available reports whether a fetch of the process would return something.
func (s *simSource) available(p *process, now time.Duration) bool {
	for _, l := range s.lanes {
		if l.any(s, p, now) != nil {
			return true
		}
	}
	return false
}

// settle takes the machine's word for a delivery, if the lane is still held.
func (s *simSource) settle(h *handed, kind semel.SettleKind, after, now time.Duration) {
	l, d := h.delivery.lane, h.delivery
	if kind == semel.DeadLetter {
		s.dead[content{d.message.id, d.message.print}]++
		return
	}
	if !l.held || l.epoch != h.item.Lane.Epoch {
		return
	}
	if kind == semel.Ack {
		d.settled, d.acknowledged = true, true
		return
	}
	d.out, d.returned, d.due = false, !s.queue, now+after
}

// allDone reports whether nothing is left, in the source or the inbox.
func (w *world) allDone() bool { return w.source.allSettled() && !w.store.anyWaits() && !w.goesOnFor() }

// allSettled reports whether the source has nothing left.
func (s *simSource) allSettled() bool {
	return !slices.ContainsFunc(s.lanes, func(l *lane) bool { return !l.settled() })
}

// settled reports whether nothing of the lane is left.
func (l *lane) settled() bool {
	return !slices.ContainsFunc(l.log, func(d *delivery) bool { return !d.settled })
}

// exhausted reports whether everything was handed out and nothing came back.
func (s *simSource) exhausted() bool {
	for _, l := range s.lanes {
		if l.settled() {
			continue
		}
		if !l.held || !s.queue && l.next < len(l.log) {
			return false
		}
		for _, d := range l.log {
			if d.returned || s.queue && !d.settled && !d.out {
				return false
			}
		}
	}
	return true
}
