package nats

import (
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/source"
)

// delivery is one delivery of a message by the server. The Handle of a source.Delivery points to it.
type delivery struct {
	lane  source.Lane
	raw   jetstream.Msg
	about *jetstream.MsgMetadata
	size  int64
	// The server does not deliver the message again before this time. If the time passes, another process may have the
	// message, and this process must no longer nack it or keep it.
	heldUntil time.Time
	// due is the time at which the delivery can be returned by Fetch: the zero time, or the end of the delay of a nack.
	due time.Time
	// local is the number of times that Fetch has returned the delivery.
	local  int
	queued bool
}

// ledger contains the deliveries of one epoch of the lane that are not acked and that this process still holds. A
// delivery leaves the ledger when it is acked, or when its hold time passes.
type ledger struct {
	mu sync.Mutex // guards all fields; no other lock is taken while it is held
	// lane is the lane of the current epoch; the zero Lane if the lane is not assigned.
	lane source.Lane
	// hold is the time for which the server waits for an ack or an extension.
	hold   time.Duration
	open   map[*delivery]struct{}
	queue  []*delivery // what Fetch returns next
	paused bool
	// last is the highest number of a delivery, as the consumer of the stream counts its deliveries.
	last uint64
}

// begin starts an epoch.
func (l *ledger) begin(lane source.Lane, hold time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lane, l.hold, l.open, l.queue, l.paused, l.last = lane, hold, map[*delivery]struct{}{}, nil, false, 0
}

// end ends the epoch and returns the deliveries that this process still holds. Afterwards nothing is sent for them,
// except what the caller sends.
func (l *ledger) end(now time.Time) []*delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(now)
	var held []*delivery
	for d := range l.open {
		held = append(held, d)
	}
	l.lane, l.open, l.queue = source.Lane{}, nil, nil
	return held
}

// drop removes the deliveries whose hold time has passed. The caller holds mu.
func (l *ledger) drop(now time.Time) {
	for d := range l.open {
		if !now.Before(d.heldUntil) {
			delete(l.open, d)
		}
	}
}

// setHold changes the hold time of later deliveries and extensions.
func (l *ledger) setHold(hold time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hold = hold
}

// add adds a message that the server has delivered at the time pulled or later. The result is false if the consumer of
// the stream counts from the beginning again: the consumer was deleted and created again.
func (l *ledger) add(lane source.Lane, raw jetstream.Msg, about *jetstream.MsgMetadata, pulled time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lane != l.lane {
		return true
	}
	if about.Sequence.Consumer <= l.last {
		return false
	}
	l.last = about.Sequence.Consumer
	d := &delivery{lane: lane, raw: raw, about: about, size: sizeOf(raw), heldUntil: pulled.Add(l.hold), queued: true}
	l.open[d] = struct{}{}
	l.queue = append(l.queue, d)
	return true
}

// take returns the deliveries that are due and fit within most, and the time at which the next delivery is due. The
// first delivery always fits.
func (l *ledger) take(most source.Bound, now time.Time) (out []source.Delivery, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(now)
	if l.paused {
		return nil, time.Time{}
	}
	var bytes int64
	l.queue = slices.DeleteFunc(l.queue, func(d *delivery) bool {
		_, held := l.open[d]
		switch {
		case !held:
			return true
		case d.due.After(now):
			if next.IsZero() || d.due.Before(next) {
				next = d.due
			}
			return false
		case len(out) > 0 && (len(out) >= most.Messages || bytes+d.size > most.Bytes):
			return false
		}
		bytes += d.size
		out = append(out, source.Delivery{
			Message: messageOf(d.raw, d.about), Lane: d.lane, Before: int(d.about.NumDelivered) - 1 + d.local, Handle: d,
		})
		d.local++
		d.queued = false
		return true
	})
	return out, next
}

// nack lets Fetch return a delivery again. If the hold time has passed, the server delivers the message itself.
func (l *ledger) nack(d *delivery, after time.Duration, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(now)
	if _, held := l.open[d]; held && !d.queued {
		d.due, d.queued = now.Add(after), true
		l.queue = append(l.queue, d)
	}
}

// owns reports whether a delivery belongs to the current epoch.
func (l *ledger) owns(d *delivery) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return d.lane == l.lane
}

// acked removes deliveries whose ack the server has confirmed.
func (l *ledger) acked(all []*delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range all {
		delete(l.open, d)
	}
}

// expiring returns the deliveries that must be extended now, and the time at which the first of their hold times ends.
func (l *ledger) expiring(now time.Time) (all []*delivery, first time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(now)
	for d := range l.open {
		if d.heldUntil.Sub(now) > l.hold/2 {
			continue
		}
		all = append(all, d)
		if first.IsZero() || d.heldUntil.Before(first) {
			first = d.heldUntil
		}
	}
	return all, first
}

// extended notes that the server has confirmed the extension of deliveries, which was sent at the time sent. A
// confirmation after the end of the hold time does not count: the server may have delivered the message again before.
func (l *ledger) extended(all []*delivery, sent, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range all {
		if now.Before(d.heldUntil) {
			d.heldUntil = sent.Add(l.hold)
		}
	}
}

// beat returns the interval at which deliveries are extended.
func (l *ledger) beat() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hold / 8
}

func (l *ledger) pause(lane source.Lane, paused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lane == l.lane {
		l.paused = paused
	}
}

// state returns whether the lane is paused, how many deliveries this process holds, and how many of them Fetch has still
// to return.
func (l *ledger) state(now time.Time) (paused bool, open, queued int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(now)
	for d := range l.open {
		if d.queued {
			queued++
		}
	}
	return l.paused, len(l.open), queued
}
