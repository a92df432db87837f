package kafka

import (
	"cmp"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/hook"
	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/semel-go/semel/kafka/internal/producer"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kgo"
)

// topicPartition names a partition.
type topicPartition struct {
	topic     string
	partition int32
}

// lane is the partition's name as a lane.
func (p topicPartition) lane() string { return fmt.Sprintf("%s/%d", p.topic, p.partition) }

// compare orders partitions by topic and number.
func (p topicPartition) compare(other topicPartition) int {
	return cmp.Or(cmp.Compare(p.topic, other.topic), cmp.Compare(p.partition, other.partition))
}

// owner is who owned a lane, as the group knows it: a member in a generation (with
// KIP-848 its epoch). A commit carries it.
type owner struct {
	member     string
	generation int32
}

// position is where a lane is done: the offset of the next record, and the
// leader's epoch of the one before it.
type position struct {
	offset int64
	epoch  int32
}

// lane is one epoch of a partition. Its fields are guarded by lanes.mu.
type lane struct {
	topicPartition
	id source.Lane
	// owner is renewed only in the group's callbacks, see group.go.
	owner owner
	// refused is the owner the group did not accept; no commit is tried until
	// the lane has another one.
	refused   owner
	refusedAt time.Time
	// gone: nothing of it is delivered or settled any more.
	gone   bool
	goneAt time.Time
	// leaving: it is being handed over, and delivers nothing more.
	leaving bool
	// broken is why nothing more can be read.
	broken error
	// fault is why the lane stands still; nil where it does not.
	fault       error
	faultLogged time.Time
	// skipsLost: it is to pass over records that are lost.
	skipsLost bool

	topicID [16]byte
	// window are the records polled and not settled, with those settled that
	// stand behind one which is not; first is the number of its first.
	window []slot
	first  int
	// held is what its unsettled records need, in bytes, and hidden what the
	// consumer does not see of those that were delivered to it.
	held, hidden int64
	// next is the offset behind the last record polled; -1 before the first.
	next int64
	// done is behind the last contiguous settled record, committed what the
	// group knows; offset -1 where unknown.
	done, committed position
	committedAt     time.Time
	// kept is what the store is known to have, see positions.go; -1 unknown.
	kept int64
	// ready are polled and to be delivered; back are handed back.
	ready, back []*record
	paused      bool // by the engine
	full        bool // by us, because the window is full
	overBudget  bool // by us, because a batch of it would exceed the budget
	unsettled   int
	// delivered is behind the last record delivered; -1 unknown.
	delivered int64
	// end and stable are of the partition as last heard: behind its last
	// record, and behind the last one that no open transaction holds up.
	end, stable int64
	lastMove    lastMove
	heldUpSince time.Time
	heldUpTold  bool

	// uncommitted is the time of the oldest record that is done and has not been
	// part of a commit, committing that of the oldest one that is part of one of which
	// there is no good answer yet; zero without one.
	uncommitted, committing time.Time
	// taken is the earliest time of the records that were polled last.
	taken time.Time
	// endAsked is when the brokers were asked for end.
	endAsked    time.Time
	firstUnread firstUnread
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

// slot is a record's place in a lane's window.
type slot struct {
	after  position
	record *record // nil when settled, so that nothing of it is kept
	// settledTime is the record's time when it is settled, in milliseconds since 1970;
	// 0 for what has none.
	settledTime int64
}

// record is a record in a lane's window, and its delivery's Handle.
type record struct {
	lane *lane
	raw  *kgo.Record // nil when settled; who delivers it replaces it, without a lock
	// written is the broker's time of it; zero where it has none.
	written time.Time
	// number is its place in the order of its lane.
	number int
	// size is what it needs, in bytes; hidden is the part of it that is not in
	// its message, because it is too large.
	size, hidden int64
	after        position
	state        recordState
	at           time.Time // delivered, or with handedBack: to be delivered again
	// message is of the first delivery; a further one has its own.
	message  semel.Message
	detached bool
	// letter is its copy among the dead letters, written or under way.
	letter *producer.Pending
}

// add appends polled records. Control records end at once: they carry nothing,
// but the group's offset passes over them as over settled ones.
func (l *lane) add(records []*kgo.Record, maxRecord int) {
	now := time.Now()
	var earliest time.Time
	for _, raw := range records {
		s := slot{after: position{raw.Offset + 1, raw.LeaderEpoch}}
		l.next = raw.Offset + 1
		if !raw.Attrs.IsControl() {
			r := &record{lane: l, raw: raw, written: message.TimeOf(raw), number: l.first + len(l.window), size: sizeOf(raw), after: s.after}
			if length := len(raw.Value); length > maxRecord {
				r.hidden = int64(length - message.Kept)
			}
			s.record = r
			l.ready = append(l.ready, r)
			l.held += r.size
			earliest = earlier(earliest, message.TimeOf(raw))
		}
		l.window = append(l.window, s)
	}
	if !earliest.IsZero() {
		l.taken = earlier(earliest, now)
	}
	l.advance()
}

func sizeOf(raw *kgo.Record) int64 {
	n := hook.PerRecord + len(raw.Key) + len(raw.Value)
	for i := range raw.Headers {
		n += len(raw.Headers[i].Key) + len(raw.Headers[i].Value)
	}
	return int64(n)
}

// detach gives a record memory of its own. Until then it shares that of its
// batch, or of the whole response, and would keep all of it.
func (r *record) detach() {
	from := r.raw
	n := len(from.Key) + len(from.Value)
	for i := range from.Headers {
		n += len(from.Headers[i].Value)
	}
	buffer := make([]byte, 0, n)
	own := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		start := len(buffer)
		buffer = append(buffer, b...)
		return buffer[start:len(buffer):len(buffer)]
	}
	raw := &kgo.Record{Topic: r.lane.topic, Partition: from.Partition, Offset: from.Offset, Timestamp: from.Timestamp, Attrs: from.Attrs, LeaderEpoch: from.LeaderEpoch}
	raw.Key, raw.Value, raw.Headers = own(from.Key), own(from.Value), from.Headers
	for i := range raw.Headers {
		raw.Headers[i].Value = own(raw.Headers[i].Value)
	}
	r.raw, r.detached = raw, true
}

// settle ends a record.
func (l *lane) settle(r *record) {
	if r.state == settled {
		return
	}
	if r.state == delivered {
		l.unsettled--
		l.hidden -= r.hidden
	}
	l.held -= r.size
	s := &l.window[r.number-l.first]
	s.record = nil
	if at := r.time(); !at.IsZero() {
		s.settledTime = at.UnixMilli()
	}
	r.state, r.raw = settled, nil
	l.advance()
}

// advance moves done over what is settled without a gap.
func (l *lane) advance() {
	n := 0
	for n < len(l.window) && l.window[n].record == nil {
		l.done = l.window[n].after
		l.uncommitted = earlier(l.uncommitted, l.window[n].time())
		n++
	}
	l.window = l.window[n:]
	l.first += n
}

// dirty reports whether the group does not know yet how far the lane is done.
func (l *lane) dirty() bool { return !l.gone && l.done.offset > l.committed.offset }

// giveBack lets a record be delivered again, not before at.
func (l *lane) giveBack(r *record, at time.Time) {
	if r.state != delivered {
		return
	}
	l.unsettled--
	l.hidden -= r.hidden
	r.state, r.at = handedBack, at
	l.back = append(l.back, r)
}

// blocked reports whether the lane delivers nothing for now.
func (l *lane) blocked() bool { return l.gone || l.leaving || l.paused }

// oldest is when the oldest unsettled delivery was made.
func (l *lane) oldest() time.Time {
	var at time.Time
	for i := range l.window {
		if r := l.window[i].record; r != nil && r.state == delivered && (at.IsZero() || r.at.Before(at)) {
			at = r.at
		}
	}
	return at
}

// standsEvery is how often the log has a lane that stands still.
const standsEvery = time.Minute

// setFault notes why a lane cannot go on. That is logged at once, unless the lane
// stood still before.
func (l *lane) setFault(why error) {
	if l.fault == nil {
		l.faultLogged = time.Time{}
	}
	l.fault = why
}

// left is what stays behind where a lane stands still.
func (l *lane) left(why error) semel.Unfinished {
	return semel.Unfinished{Lane: l.id.ID, Messages: l.unread(), Reason: why.Error(), Fault: true}
}

// unread is how many offsets are behind where the lane has got to.
func (l *lane) unread() int64 {
	at := max(l.reached(), l.committed.offset)
	if at < 0 || l.end < 0 {
		return source.Unknown
	}
	return max(l.end-at, 0)
}

// heldUp reports whether records are there and none can be delivered.
func (l *lane) heldUp(uncommitted bool) bool {
	return !uncommitted && !l.gone && l.stable >= 0 && l.stable < l.end && len(l.ready) == 0 && l.reached() >= l.stable
}

// reached is the offset behind the last record delivered, or passed over
// because it carries nothing; -1 before the first.
func (l *lane) reached() int64 {
	if len(l.ready) == 0 {
		return max(l.next, l.delivered)
	}
	return l.delivered
}

// readAt is where the lane is to be read next.
func (l *lane) readAt() int64 { return max(l.next, l.committed.offset) }

var noTopicID [16]byte

func (p topicPartition) asMap() map[string][]int32 { return map[string][]int32{p.topic: {p.partition}} }

// unfit says why records cannot follow what the lane has; empty if they can.
func (l *lane) unfit(id [16]byte, records []*kgo.Record) string {
	switch {
	case l.topicID != noTopicID && id != noTopicID && id != l.topicID:
		return "the topic was deleted and created anew; its offsets begin again, and what the former one held and was not read is lost. It is read from its beginning"
	case records[0].Offset < l.next:
		return fmt.Sprintf("the log went back from offset %d to %d: the brokers lost records (an unclean election of a leader?). It is read again from the group's offset", l.next, records[0].Offset)
	}
	return ""
}
