package kafka

import (
	"time"

	"github.com/semel-go/semel"
	"github.com/twmb/franz-go/pkg/kgo"
)

// place names a partition.
type place struct {
	topic     string
	partition int32
}

// stamp is who owned a lane, as the group knows it. A commit carries it.
type stamp struct {
	member     string
	generation int32
}

// position is where a lane is done: the offset of the next record, and the
// leader's epoch of the one before it.
type position struct {
	offset int64
	epoch  int32
}

// lane is one epoch of a partition. Its fields are guarded by Source.mu.
type lane struct {
	place
	id semel.Lane
	// stamp is renewed only in the group's callbacks, see membership.go.
	stamp stamp
	// refused is the stamp the group did not accept; no commit is tried until
	// the lane has another one.
	refused   stamp
	refusedAt time.Time
	// gone: nothing of it is delivered or settled any more.
	gone   bool
	goneAt time.Time
	// leaving: it is being handed over, and delivers nothing more.
	leaving bool
	// broken is why nothing more can be read.
	broken error

	topicID [16]byte
	// window are the records polled and not settled, with those settled that
	// stand behind one which is not.
	window []*record
	// next is the offset behind the last record polled; -1 before the first.
	next int64
	// done is behind the last contiguous settled record, committed what the
	// group knows; offset -1 where unknown.
	done, committed position
	committedAt     time.Time
	// ready are polled and to be delivered; back are handed back.
	ready, back []*record
	paused      bool // by the engine
	full        bool // by us, because the window is full
	unsettled   int
	// delivered is behind the last record delivered; -1 unknown.
	delivered int64
	// end and stable are of the partition as last heard: behind its last
	// record, and behind the last one that no open transaction holds up.
	end, stable int64
	heldUpSince time.Time
	heldUpTold  bool
}

// mostWindow is how many records may stand behind one that is not settled
// before the lane is paused, resumeWindow when it goes on.
const (
	mostWindow   = 1 << 16
	resumeWindow = mostWindow / 2
)

type recordState uint8

const (
	polled recordState = iota
	delivered
	handedBack
	settled
)

// record is a record in a lane's window, and its delivery's Handle.
type record struct {
	lane  *lane
	raw   *kgo.Record // nil when settled
	after position
	state recordState
	at    time.Time // delivered, or with handedBack: to be delivered again
	// letter is its copy among the dead letters, written or under way.
	letter *letter
}

// add appends polled records. Control records end at once: they carry nothing,
// but the group's offset passes over them as over settled ones.
func (l *lane) add(records []*kgo.Record) {
	block := make([]record, len(records))
	for i, raw := range records {
		r := &block[i]
		*r = record{lane: l, raw: raw, after: position{raw.Offset + 1, raw.LeaderEpoch}}
		l.next = raw.Offset + 1
		l.window = append(l.window, r)
		if raw.Attrs.IsControl() {
			r.state, r.raw = settled, nil
			continue
		}
		l.ready = append(l.ready, r)
	}
	l.advance()
}

// settle ends a record and reports whether the lane's place moved.
func (l *lane) settle(r *record) {
	if r.state == settled {
		return
	}
	if r.state == delivered {
		l.unsettled--
	}
	r.state, r.raw = settled, nil
	l.advance()
}

// advance moves done over what is settled without a gap.
func (l *lane) advance() {
	n := 0
	for n < len(l.window) && l.window[n].state == settled {
		l.done = l.window[n].after
		l.window[n] = nil
		n++
	}
	l.window = l.window[n:]
}

// dirty reports whether the group does not know yet how far the lane is done.
func (l *lane) dirty() bool { return !l.gone && l.done.offset > l.committed.offset }

// giveBack lets a record be delivered again, not before at.
func (l *lane) giveBack(r *record, at time.Time) {
	if r.state != delivered {
		return
	}
	l.unsettled--
	r.state, r.at = handedBack, at
	l.back = append(l.back, r)
}

// blocked reports whether the lane delivers nothing for now.
func (l *lane) blocked() bool { return l.gone || l.leaving || l.paused }

// oldest is when the oldest unsettled delivery was made.
func (l *lane) oldest() time.Time {
	var at time.Time
	for _, r := range l.window {
		if r.state == delivered && (at.IsZero() || r.at.Before(at)) {
			at = r.at
		}
	}
	return at
}
