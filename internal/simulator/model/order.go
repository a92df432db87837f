package model

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

// Place is the position of a stream: the last version that took effect, and the fingerprint of its content.
type Place struct {
	Version int64
	Print   semel.Fingerprint
}

// stream is the state of a stream in the store.
type stream struct {
	At Place
	// holder is the last transaction that locked the stream. The lock of the stream ends with the transaction.
	holder *Transaction
}

// Stream returns the stream with the given name. In a new stream, the next version is 1.
func (s *Store) Stream(name string) *stream {
	if s.streams[name] == nil {
		s.streams[name] = &stream{}
	}
	return s.streams[name]
}

// Held reports whether an open transaction has locked the stream.
func (s *stream) Held() bool { return s.holder != nil && s.holder.Open }

// Hold locks a stream for a transaction, until the transaction ends.
func (s *Store) Hold(name string, t *Transaction) { s.Stream(name).holder = t }

// Overdue reports whether the row was parked because an earlier version did not arrive in time.
func (r *Row) Overdue() bool { return r.As == machine.AsOverdue }

// WaitsForTurn reports whether the row waits only until the earlier versions of its stream have taken effect.
func (r *Row) WaitsForTurn() bool {
	return r.Message.Version > 0 && (r.As == machine.AsBlocked && r.Token == 0 || r.Overdue())
}

// FreeTurns unblocks the rows of a stream whose earlier versions have taken effect, including rows that the current
// commit writes as waiting. The result freed is true if a row was unblocked.
func (s *Store) FreeTurns(name string, by holder, now time.Duration) (freed bool) {
	for _, r := range s.Inbox {
		if !r.WaitsForTurn() || r.Message.Stream != name || r.Message.Version > s.Stream(name).At.Version+1 {
			continue
		}
		if r.Overdue() && !(s.Owns(r) && s.Markers[r.Key.ID].Outcome == store.Parked) {
			r.As, r.Reason = machine.AsParked, semel.ReasonConflict // the marker belongs to a message with other content
			continue
		}
		r.As, r.Reason, r.By = machine.AsReceived, "", by
		r.Dates(now, 0)
		s.Remember(r.Key.ID, store.Waiting, Marker{Print: r.Print, At: now})
		freed = true
	}
	return freed
}

// noDueTime is the due time of a row that waits for other rows and not for a time.
const noDueTime = time.Duration(1 << 62)

// KeepsBack reports whether a row blocks the later rows of its queue (of a key or lane).
func (r *Row) KeepsBack() bool { return r.Place > 0 && (r.Waits() || r.As == machine.AsParked) }

// Follows reports whether a row waits for earlier rows of its queue (of a key or lane).
func (r *Row) Follows() bool { return r.Place > 0 && r.As == machine.AsBlocked }

// First returns the first row of a queue (of a key or lane) that blocks the later rows, or nil if no row blocks.
func (s *Store) First(line string) (first *Row) {
	for _, r := range s.Inbox {
		if r.KeepsBack() && r.Line == line && (first == nil || r.Place < first.Place) {
			first = r
		}
	}
	return first
}

// waitsForParked reports whether a row waits for a parked row of its queue, so that only a person can unblock it.
func (s *Store) waitsForParked(r *Row) bool {
	return r.Follows() && s.First(r.Line).As == machine.AsParked
}

// Enter appends a row to a queue (of a key or lane). If the row was written as waiting for other rows but is the first
// of the queue, the row can be claimed at once, and Enter returns true.
func (s *Store) Enter(r *Row, line string, now time.Duration) bool {
	r.Place = 0
	behind := s.First(line) != nil
	s.places++
	r.Line, r.Place = line, s.places
	switch {
	case r.As == machine.AsParked:
	case behind:
		r.As, r.Reason, r.Due = machine.AsBlocked, reasonname.Behind, noDueTime
	case r.As == machine.AsBlocked:
		r.As, r.Reason = machine.AsReceived, ""
		r.Dates(now, 0)
		return true
	}
	return false
}

// Advance unblocks the first row of a queue after another row, the parameter left, was removed from the queue. The
// result freed is true if a row was unblocked.
func (s *Store) Advance(left *Row, by holder, now time.Duration) (freed bool) {
	if left.Line == "" || left.KeepsBack() {
		return false
	}
	next := s.First(left.Line)
	if next == nil || !next.Follows() {
		return false
	}
	next.As, next.Reason, next.By = machine.AsReceived, "", by
	next.Dates(now, 0)
	return true
}
