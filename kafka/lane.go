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

// lane returns the partition's name as a lane.
func (p topicPartition) lane() string { return fmt.Sprintf("%s/%d", p.topic, p.partition) }

// compare orders partitions by topic and number.
func (p topicPartition) compare(other topicPartition) int {
	return cmp.Or(cmp.Compare(p.topic, other.topic), cmp.Compare(p.partition, other.partition))
}

// owner is the group's owner of a lane: a member and a generation (with KIP-848 its epoch). A commit contains it.
type owner struct {
	member     string
	generation int32
}

// position is how far a lane is processed: the offset of the next record, and the leader epoch of the record before it.
type position struct {
	offset int64
	epoch  int32
}

// lane is one epoch of a partition. lanes.mu guards its fields.
type lane struct {
	topicPartition
	id source.Lane
	// owner is changed only in the group's callbacks; see group.go.
	owner owner
	// refused is the owner that the group did not accept; no commit is tried until the lane has another owner.
	refused   owner
	refusedAt time.Time
	// gone: nothing of the lane is delivered or settled any more.
	gone   bool
	goneAt time.Time
	// leaving: the lane is being handed over, and delivers nothing more.
	leaving bool
	// broken is why nothing more can be read.
	broken error
	// fault is why the lane has stopped; nil if it has not.
	fault       error
	faultLogged time.Time
	// skipsLost: the lane must skip lost records.
	skipsLost bool

	topicID [16]byte
	// window contains the polled unsettled records, and settled records after an unsettled one; first is the number of
	// its first record.
	window []slot
	first  int
	// held is the size of its unsettled records in bytes. hidden is the part of the delivered records that the consumer
	// does not see.
	held, hidden int64
	// next is the offset after the last polled record; -1 before the first.
	next int64
	// done is the position after the last record that is settled without a gap. committed is the position that the group
	// has; offset -1 if unknown.
	done, committed position
	committedAt     time.Time
	// kept is the position that the store is known to have, see positions.go; -1 if unknown.
	kept int64
	// ready are the polled records to be delivered; back are the nacked records.
	ready, back []*record
	paused      bool // by the engine
	full        bool // by the source, because the window is full
	overBudget  bool // by the source, because a batch would exceed the budget
	unsettled   int
	// delivered is the offset after the last delivered record; -1 if unknown.
	delivered int64
	// end and stable are the last known end of the partition: after its last record, and before the first open
	// transaction.
	end, stable int64
	lastMove    lastMove
	heldUpSince time.Time
	heldUpTold  bool

	// uncommitted is the time of the oldest settled record that was not part of a commit. committing is the time of the
	// oldest record whose commit has no successful answer yet. Zero if there is none.
	uncommitted, committing time.Time
	// taken is the earliest time of the records that were polled last.
	taken time.Time
	// endAsked is when end was requested.
	endAsked    time.Time
	firstUnread firstUnread
}

// mostWindow is how many records may follow an unsettled record before the lane is paused; resumeWindow is when it is
// resumed.
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
	record *record // nil when settled, to free its memory
	// settledTime is the record's time when it is settled, in milliseconds since 1970; 0 if it has none.
	settledTime int64
}

// record is a record in a lane's window. record is the Handle of its deliveries.
type record struct {
	lane *lane
	raw  *kgo.Record // nil when settled; Fetch replaces it, without a lock
	// written is the broker's time of the record; zero if it has none.
	written time.Time
	// number is the record's place in the order of its lane.
	number int
	// size is the memory of the record in bytes. hidden is the part that is not in its message, because the record is
	// too large.
	size, hidden int64
	after        position
	state        recordState
	at           time.Time // when it was delivered; if handedBack, when it is due again
	// message is the message of the first delivery; each redelivery has its own.
	message  semel.Message
	detached bool
	// letter is its copy among the dead letters, written or in progress.
	letter *producer.Pending
}

// add appends polled records. Control records end at once: they contain no message, but the group's offset must pass
// them like settled records.
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

// detach gives a record its own memory. Until then it shares the memory of its batch, or of the whole response, and
// would keep all of it.
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

// settle settles a record.
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

// advance moves done over the records that are settled without a gap.
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

// dirty reports whether the group does not have the lane's current position.
func (l *lane) dirty() bool { return !l.gone && l.done.offset > l.committed.offset }

// giveBack lets a record be delivered again, at the time at or later.
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

// oldest returns when the oldest unsettled delivery was made.
func (l *lane) oldest() time.Time {
	var at time.Time
	for i := range l.window {
		if r := l.window[i].record; r != nil && r.state == delivered && (at.IsZero() || r.at.Before(at)) {
			at = r.at
		}
	}
	return at
}

// standsEvery is how often a stopped lane is logged.
const standsEvery = time.Minute

// setFault stores why a lane has stopped. It is logged at once, unless the lane had stopped already.
func (l *lane) setFault(why error) {
	if l.fault == nil {
		l.faultLogged = time.Time{}
	}
	l.fault = why
}

// left returns what remains unfinished in a stopped lane.
func (l *lane) left(why error) semel.Unfinished {
	return semel.Unfinished{Lane: l.id.ID, Messages: l.unread(), Reason: why.Error(), Fault: true}
}

// unread returns how many offsets are after the lane's position.
func (l *lane) unread() int64 {
	at := max(l.reached(), l.committed.offset)
	if at < 0 || l.end < 0 {
		return source.Unknown
	}
	return max(l.end-at, 0)
}

// heldUp reports whether records exist and an open transaction prevents their delivery.
func (l *lane) heldUp(uncommitted bool) bool {
	return !uncommitted && !l.gone && l.stable >= 0 && l.stable < l.end && len(l.ready) == 0 && l.reached() >= l.stable
}

// reached returns the offset after the last record that was delivered, or passed because it contains no message; -1
// before the first.
func (l *lane) reached() int64 {
	if len(l.ready) == 0 {
		return max(l.next, l.delivered)
	}
	return l.delivered
}

// readAt returns the offset to read next.
func (l *lane) readAt() int64 { return max(l.next, l.committed.offset) }

var noTopicID [16]byte

func (p topicPartition) asMap() map[string][]int32 { return map[string][]int32{p.topic: {p.partition}} }

// unfit returns why records cannot follow the lane's records; empty if they can.
func (l *lane) unfit(id [16]byte, records []*kgo.Record) string {
	switch {
	case l.topicID != noTopicID && id != noTopicID && id != l.topicID:
		return "the topic was deleted and created again; its offsets start again, and unread records of the deleted topic are lost. The topic is read from its beginning"
	case records[0].Offset < l.next:
		return fmt.Sprintf("the log went back from offset %d to %d: the brokers lost records (an unclean leader election?). The partition is read again from the group's offset", l.next, records[0].Offset)
	}
	return ""
}
