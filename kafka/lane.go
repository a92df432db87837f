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

// topicPartition names a partition of a topic.
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

// owner is the owner of a lane in the group: a member and a generation (with KIP-848 an epoch). A commit
// contains both.
type owner struct {
	member     string
	generation int32
}

// position is the position up to which a lane is processed: the field offset is the offset of the next record, and the
// field epoch is the leader epoch of the record before.
type position struct {
	offset int64
	epoch  int32
}

// lane is a partition in one epoch: a partition that is assigned again becomes a new lane. lanes.mu guards the
// fields.
type lane struct {
	topicPartition
	id source.Lane
	// The owner changes only in the group's callbacks; see group.go.
	owner owner
	// The owner whose commit the group refused. The source commits nothing for the lane until the lane has another
	// owner.
	refused   owner
	refusedAt time.Time
	// ended is true after the end of the lane: the lane's records are no longer delivered, and acks have no
	// effect.
	ended   bool
	endedAt time.Time
	// The field leaving is true while the lane is handed over to another member. The lane delivers no further records.
	leaving bool
	// The reason why the lane cannot be read further; nil if the lane can be read.
	broken error
	// The reason why the lane has stopped; nil if the lane has not stopped.
	fault       error
	faultLogged time.Time
	// skipLost is true if the lane must skip lost records.
	skipLost bool

	topicID [16]byte
	// The field window contains the polled records that are not acked, and the acked records that follow a record that
	// is not acked. The field first contains the number that the first record of the window has in the lane.
	window []slot
	first  int
	// heldBytes is the size in bytes of the records that are not acked. hiddenBytes is the size of those
	// parts of delivered records that the consumer does not get.
	heldBytes, hiddenBytes int64
	// The offset after the last polled record; -1 before the first record.
	next int64
	// acked is the position up to which all records are acked. The field committed is the position that the
	// group has, with the offset -1 if this position is unknown.
	acked, committed position
	committedAt      time.Time
	// The position that the store has, as far as known; see positions.go. The value is -1 if this position is unknown.
	storedOffset int64
	// The field ready contains the polled records that are not delivered yet. The field nacked contains the nacked
	// records.
	ready, nacked []*record
	paused        bool // the consumer has paused the lane
	full          bool // the source has paused the lane, because the window is full
	overBudget    bool // the source has paused the lane, because a batch would exceed the budget
	unsettled     int
	// The offset after the last delivered record; -1 if unknown.
	delivered int64
	// The last known ends of the partition. The field end is the offset after the last record. The field stable is the
	// offset at which the first open transaction begins; without an open transaction, stable is equal to end.
	end, stable int64
	lastMove    lastMove
	heldUpSince time.Time
	heldUpTold  bool

	// oldestUncommitted is the time of the oldest acked record that no commit contains yet. oldestUnconfirmed is
	// the time of the oldest record whose commit is not confirmed yet. A zero time means that no record waits for a
	// commit or for its confirmation.
	oldestUncommitted, oldestUnconfirmed time.Time
	// The earliest time of the records in the last poll.
	earliestTime time.Time
	// The time of the last request for the end of the partition.
	endAsked    time.Time
	firstUnread firstUnread
}

// The lane is paused when mostWindow records follow a record that is not acked. The lane is resumed when the number has
// fallen to resumeWindow.
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

// slot is an element of lane.window: one record of a lane, or the time of an acked record.
type slot struct {
	after  position
	record *record // nil after the record is acked, to free its memory
	// The time of an acked record, in milliseconds since 1970; 0 if the record has no time.
	settledTime int64
}

// record is a polled record of a lane, with the state of its delivery. Each delivery of the record has it as Handle.
type record struct {
	lane *lane
	raw  *kgo.Record // nil after the record is acked; Fetch replaces raw without a lock
	// The broker's time of the record; zero if the record has no time.
	written time.Time
	// The number of the record in the order of its lane.
	number int
	// The field size is the memory of the record in bytes. hiddenSize is the size of the part that the message
	// does not contain because the record is too large.
	size, hiddenSize int64
	after            position
	state            recordState
	deliveryTime     time.Time // the time of the delivery; if handedBack, the time of the next delivery
	// The message of the first delivery. Each redelivery has its own copy.
	message  semel.Message
	detached bool
	// The record's dead letter, written or in progress; nil if the record has no dead letter.
	letter *producer.Pending
}

// add appends polled records. A control record counts as acked at once, because it contains no message, but the group's
// offset must pass the record.
func (l *lane) add(records []*kgo.Record, maxRecord int) {
	now := time.Now()
	var earliest time.Time
	for _, raw := range records {
		s := slot{after: position{raw.Offset + 1, raw.LeaderEpoch}}
		l.next = raw.Offset + 1
		if !raw.Attrs.IsControl() {
			r := &record{lane: l, raw: raw, written: message.TimeOf(raw), number: l.first + len(l.window), size: sizeOf(raw), after: s.after}
			if length := len(raw.Value); length > maxRecord {
				r.hiddenSize = int64(length - message.Kept)
			}
			s.record = r
			l.ready = append(l.ready, r)
			l.heldBytes += r.size
			earliest = minTime(earliest, message.TimeOf(raw))
		}
		l.window = append(l.window, s)
	}
	if !earliest.IsZero() {
		l.earliestTime = minTime(earliest, now)
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

// detach copies a record to memory of its own. Without detach, the record shares the memory of its batch, or of the
// whole response, and keeps all this memory in use.
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

// settle marks a record as acked or dead-lettered.
func (l *lane) settle(r *record) {
	if r.state == settled {
		return
	}
	if r.state == delivered {
		l.unsettled--
		l.hiddenBytes -= r.hiddenSize
	}
	l.heldBytes -= r.size
	s := &l.window[r.number-l.first]
	s.record = nil
	if at := r.brokerTime(); !at.IsZero() {
		s.settledTime = at.UnixMilli()
	}
	r.state, r.raw = settled, nil
	l.advance()
}

// advance moves the field acked up to the first record that is not acked.
func (l *lane) advance() {
	n := 0
	for n < len(l.window) && l.window[n].record == nil {
		l.acked = l.window[n].after
		l.oldestUncommitted = minTime(l.oldestUncommitted, l.window[n].ackedTime())
		n++
	}
	l.window = l.window[n:]
	l.first += n
}

// needsCommit reports whether the lane has a newer position than the group.
func (l *lane) needsCommit() bool { return !l.ended && l.acked.offset > l.committed.offset }

// giveBack schedules a record for another delivery, not before the time at.
func (l *lane) giveBack(r *record, at time.Time) {
	if r.state != delivered {
		return
	}
	l.unsettled--
	l.hiddenBytes -= r.hiddenSize
	r.state, r.deliveryTime = handedBack, at
	l.nacked = append(l.nacked, r)
}

// isBlocked reports whether the lane must not deliver records now.
func (l *lane) isBlocked() bool { return l.ended || l.leaving || l.paused }

// oldestDelivery returns the delivery time of the oldest delivery that is not acked.
func (l *lane) oldestDelivery() time.Time {
	var at time.Time
	for i := range l.window {
		if r := l.window[i].record; r != nil && r.state == delivered && (at.IsZero() || r.deliveryTime.Before(at)) {
			at = r.deliveryTime
		}
	}
	return at
}

// The interval at which the log repeats that a lane has stopped.
const standsEvery = time.Minute

// setFault stores the reason why a lane has stopped. The reason is logged at once if the lane had no fault
// before.
func (l *lane) setFault(why error) {
	if l.fault == nil {
		l.faultLogged = time.Time{}
	}
	l.fault = why
}

// newUnfinished returns the report of a stopped lane: the number of records that are left, and the reason.
func (l *lane) newUnfinished(why error) semel.Unfinished {
	return semel.Unfinished{Lane: l.id.ID, Messages: l.countUnread(), Reason: why.Error(), Fault: true}
}

// countUnread returns the number of offsets after the lane's position.
func (l *lane) countUnread() int64 {
	at := max(l.deliveredOffset(), l.committed.offset)
	if at < 0 || l.end < 0 {
		return source.Unknown
	}
	return max(l.end-at, 0)
}

// heldUp reports whether the lane has records that cannot be delivered because of an open transaction.
func (l *lane) heldUp(uncommitted bool) bool {
	return !uncommitted && !l.ended && l.stable >= 0 && l.stable < l.end && len(l.ready) == 0 && l.deliveredOffset() >= l.stable
}

// deliveredOffset returns the offset after the last record that was delivered or that contains no message. The
// result is -1 before the first record.
func (l *lane) deliveredOffset() int64 {
	if len(l.ready) == 0 {
		return max(l.next, l.delivered)
	}
	return l.delivered
}

// readAt returns the offset of the next record to read.
func (l *lane) readAt() int64 { return max(l.next, l.committed.offset) }

var noTopicID [16]byte

func (p topicPartition) asMap() map[string][]int32 { return map[string][]int32{p.topic: {p.partition}} }

// rejectReason returns the reason why new records cannot be added to the lane; empty if the records can be added.
func (l *lane) rejectReason(id [16]byte, records []*kgo.Record) string {
	switch {
	case l.topicID != noTopicID && id != noTopicID && id != l.topicID:
		return "the topic was deleted and created again; its offsets start again, and unread records of the deleted topic are lost. The topic is read from its beginning"
	case records[0].Offset < l.next:
		return fmt.Sprintf("the log went back from offset %d to %d: the brokers lost records (an unclean leader election?). The partition is read again from the group's offset", l.next, records[0].Offset)
	}
	return ""
}
