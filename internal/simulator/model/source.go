package model

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// holder is a process. The model only compares holders.
type holder any

// Lane is a lane of the source.
type Lane struct {
	ID       string
	Epoch    uint64
	Log      []*Delivery
	Next     int // in a log: the position of the next delivery
	Held     bool
	Owner    holder // the process that has the lane, if Held
	Revoking bool
	Paused   bool

	// Of is the live lane that a replay reads again, and Stored the position of the replay in the store. For a live
	// lane, Of is nil and Stored is 0. Before has the deliveries from the time before the live processes began.
	Of     *Lane
	Stored int
	Before []*Delivery
}

// Current returns the lane in its current epoch.
func (l *Lane) Current() source.Lane { return source.Lane{ID: l.ID, Epoch: l.Epoch} }

// Give assigns the lane to a process and starts a new epoch. Deliveries that are not acked are delivered again. A log
// starts again at the first delivery that is not acked.
func (l *Lane) Give(to holder) {
	l.Epoch++
	l.Owner = to
	l.Held, l.Revoking, l.Paused = true, false, false
	l.Next = len(l.Log)
	for i := len(l.Log) - 1; i >= 0; i-- {
		d := l.Log[i]
		d.out, d.returned, d.availableAt = false, false, 0
		if l.Of != nil { // the next process knows only the stored position
			d.Settled = i < l.Stored
		}
		if !d.Settled {
			l.Next = i
		}
	}
}

// Leave ends the epoch.
func (l *Lane) Leave() { l.Held, l.Revoking = false, false }

// Any returns the next delivery that the process can get from the lane now, or nil if there is none.
func (l *Lane) Any(s *Source, p holder, now time.Duration) *Delivery {
	if !l.Held || l.Paused || l.Owner != p {
		return nil
	}
	for _, d := range l.Log {
		if s.canDeliver(d, now) {
			return d
		}
	}
	return nil
}

// Read appends a delivery of the live lane to the lane of a replay.
func (l *Lane) Read(d *Delivery) {
	l.Log = append(l.Log, &Delivery{Message: d.Message, Of: d, Lane: l, Position: len(l.Log)})
}

// Store stores the position of a replay's lane.
func (l *Lane) Store(position int) { l.Stored = max(l.Stored, position) }

// SettledUpTo returns the position of the first delivery that is not acked.
func (l *Lane) SettledUpTo() int {
	if i := slices.IndexFunc(l.Log, func(d *Delivery) bool { return !d.Settled }); i >= 0 {
		return i
	}
	return len(l.Log)
}

// isSettled reports whether all deliveries of the lane are acked or dead-lettered.
func (l *Lane) isSettled() bool {
	return !slices.ContainsFunc(l.Log, func(d *Delivery) bool { return !d.Settled })
}

// Identities returns the identities of the messages in the lane.
func (l *Lane) Identities() map[string]bool {
	all := map[string]bool{}
	for _, d := range l.Log {
		all[d.Message.ID] = true
	}
	return all
}

// Live returns the live lane: l itself, or the lane that l reads again.
func (l *Lane) Live() *Lane {
	if l.Of != nil {
		return l.Of
	}
	return l
}

// Source is the model of a source.
type Source struct {
	Queue bool
	Lanes []*Lane
	// Dead has, for each content, the number of dead letters.
	Dead map[Content]int
}

// Content identifies a message with all its copies.
type Content struct {
	ID    string
	Print semel.Fingerprint
}

// Find returns the lane with the given id, or nil if there is no such lane.
func (s *Source) Find(id string) *Lane {
	for _, l := range s.Lanes {
		if l.ID == id {
			return l
		}
	}
	return nil
}

// canDeliver reports whether the source can deliver d now.
func (s *Source) canDeliver(d *Delivery, now time.Duration) bool {
	if d.Produced > now || d.availableAt > now {
		return false
	}
	if d.returned {
		return true
	}
	if s.Queue {
		return !d.Settled && !d.out
	}
	return d.Position == d.Lane.Next
}

// Hand records that a process gets the delivery d.
func (s *Source) Hand(d *Delivery) {
	if !s.Queue && !d.returned {
		d.Lane.Next++
	}
	d.out, d.returned = true, false
	d.Count++
}

// Available reports whether a fetch of the process would return a delivery now.
func (s *Source) Available(p holder, now time.Duration) bool {
	for _, l := range s.Lanes {
		if l.Any(s, p, now) != nil {
			return true
		}
	}
	return false
}

// HasMore reports whether the process can get a delivery, now or later.
func (s *Source) HasMore(p holder) bool {
	for _, l := range s.Lanes {
		if l.Held && (l.Owner != p || l.Paused) {
			continue
		}
		for i, d := range l.Log {
			if !d.Settled && (!l.Held || d.returned || s.Queue && !d.out || !s.Queue && i >= l.Next) {
				return true
			}
		}
	}
	return false
}

// Settle acks, nacks or dead-letters a delivery. If the epoch of the lane has ended, only dead letters are written.
func (s *Source) Settle(d *Delivery, epoch uint64, kind semel.SettleKind, after, now time.Duration) {
	l := d.Lane
	if kind == semel.DeadLetter {
		s.Dead[Content{d.Message.ID, d.Message.Print}]++
		return
	}
	if !l.Held || l.Epoch != epoch {
		return
	}
	if kind == semel.Ack {
		d.Settled, d.Acknowledged = true, true
		return
	}
	d.out, d.returned, d.availableAt = false, !s.Queue, now+after
}

// AllSettled reports whether all deliveries of the source are acked or dead-lettered.
func (s *Source) AllSettled() bool {
	return !slices.ContainsFunc(s.Lanes, func(l *Lane) bool { return !l.isSettled() })
}

// Exhausted reports whether all messages were delivered and no delivery waits for redelivery.
func (s *Source) Exhausted() bool {
	for _, l := range s.Lanes {
		if l.isSettled() {
			continue
		}
		if !l.Held || !s.Queue && l.Next < len(l.Log) {
			return false
		}
		for _, d := range l.Log {
			if d.returned || s.Queue && !d.Settled && !d.out {
				return false
			}
		}
	}
	return true
}
