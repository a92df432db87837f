package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// While a lane has old unfinished records, Semel keeps the lane's markers; see source.Info.Ages. So an uncertain age is
// reported too high or not at all. A lane is reported as finished only if this is certain.

// endKnown is the time for which an answer about the end of a log stays valid. A source without a connection does not
// learn of new records, so after the time endKnown the source no longer reports a lane as finished.
const endKnown = 4 * askEvery

// laneAges implements source.Info.Ages. A lane is named by topic and partition, as in "payments/3". The age of a
// lane is the first of the following times that applies:
//
//   - If the lane has records that are not acked, or records whose offset commit is not confirmed: the time of the
//     oldest such record, but not later than its delivery, because producers' clocks may be ahead.
//   - If an answer of the brokers in the last minute said that the lane is at the end of its log: zero.
//   - In all other cases: the time of the first unread record. Until the source knows the time of the first unread
//     record: the time of the last fetched records. With the brokers' times (LogAppendTime) no later record is older
//     than the last fetched records; with producers' times (CreateTime), a producer with a slow clock may write older
//     records.
//
// A stopped lane never counts as finished. A lane is missing in the result if one of its records has no time.
// A lane is also missing if nothing was read since the lane was assigned and the brokers have not yet answered
// a request for its unread records.
//
// The result complete is false while the group has not assigned lanes, and when no broker has answered for a minute,
// because a disconnected process may have lost lanes.
func (s *Source) laneAges() (lanes []source.LaneAge, complete bool) {
	now, before := time.Now(), s.assignment()
	lanes, complete = s.progress.laneAges(now)
	complete = complete && before.client != nil && s.assignment() == before
	return lanes, complete && s.brokers.lastAnswer.Within(endKnown, now)
}

func (p *progress) laneAges(now time.Time) (ages []source.LaneAge, all bool) {
	all = true
	for l := range p.lanes.each {
		if l.ended {
			continue
		}
		oldest, known := l.oldestRecordTime(now)
		if known {
			ages = append(ages, source.LaneAge{Lane: l.id.ID, Oldest: oldest})
		}
		all = all && known
	}
	return ages, all
}

// oldestRecordTime returns the time of the oldest record of the lane that is unread or not acked yet. The time is zero
// if all records of the lane are read and acked. The result known is false if the source does not know the time.
func (l *lane) oldestRecordTime(now time.Time) (oldest time.Time, known bool) {
	oldest = minTime(l.oldestUncommitted, l.oldestUnconfirmed)
	held := false
	for i := range l.window {
		s := &l.window[i]
		at := s.ackedTime()
		if s.record != nil {
			held, at = true, s.record.brokerTime()
			if at.IsZero() {
				return time.Time{}, false
			}
		}
		oldest = minTime(oldest, at)
	}
	if held {
		return oldest, true
	}
	unread, known := l.firstUnreadTime(now)
	return minTime(oldest, unread), known
}

func (l *lane) firstUnreadTime(now time.Time) (oldest time.Time, known bool) {
	switch {
	case l.broken == nil && l.atEnd(now):
		return time.Time{}, true
	case l.firstUnread.offset == l.deliveredOffset() && !l.firstUnread.time.IsZero():
		return l.firstUnread.time, true
	}
	return l.earliestTime, !l.earliestTime.IsZero()
}

// atEnd reports whether, according to a recent answer of the brokers, the lane has no unread record. The end of a log
// can be after its last record.
func (l *lane) atEnd(now time.Time) bool {
	at := l.deliveredOffset()
	if at < 0 || l.endAsked.IsZero() || now.Sub(l.endAsked) > endKnown {
		return false
	}
	return at == l.end || l.firstUnread.noRecord && l.firstUnread.offset == at && l.firstUnread.end == l.end
}

// brokerTime returns the time that the broker stored for a record that is not acked yet, or the time of the delivery,
// if the delivery was earlier. The result is zero if the record has no time.
func (r *record) brokerTime() time.Time {
	if r.written.IsZero() || r.deliveryTime.IsZero() {
		return r.written
	}
	return minTime(r.written, r.deliveryTime)
}

// ackedTime returns the time of an acked record. The result is zero if the record has no time or is not acked
// yet.
func (s *slot) ackedTime() time.Time {
	if s.settledTime == 0 {
		return time.Time{}
	}
	return time.UnixMilli(s.settledTime).UTC()
}

// minTime returns the earlier of two times. A zero time counts as missing.
func minTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// A lane with unread records makes no progress if the lane has stopped, if the lane waits for an open transaction, or
// if only a gap is left before the end of the log. While a lane makes no progress, the age of its unread records is
// unknown, and the source requests the age from the brokers.

// firstUnread is the brokers' answer about the first record after a lane's position.
type firstUnread struct {
	// The lane's position at the time of the last request.
	offset int64
	since  time.Time
	// The time of the record; zero if the time is unknown or no record exists.
	time time.Time
	// noRecord is true if the log had no record between the offsets at and end.
	noRecord bool
	end      int64
}

// askUnread requests the first record after the position of each lane that makes no progress and whose age is
// unknown. Unanswered requests are repeated later.
func (s *Source) askUnread(ctx context.Context) {
	for _, r := range s.progress.stuckLanes(time.Now()) {
		found, err := s.brokers.firstBehind(ctx, r.lanePosition)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			s.progress.noteUnread(r, found)
		}
	}
}

// stuckLane is the position of a lane that makes no progress, with the end of the lane's log at the same time.
type stuckLane struct {
	lanePosition
	end int64
}

// stuckLanes returns the lanes that have unread records but have delivered nothing for stalledAfter.
func (p *progress) stuckLanes(now time.Time) []stuckLane {
	var all []stuckLane
	for l := range p.lanes.each {
		at := l.deliveredOffset()
		if l.firstUnread.offset != at || l.firstUnread.since.IsZero() {
			l.firstUnread = firstUnread{offset: at, since: now}
		}
		u := &l.firstUnread
		known := !u.time.IsZero() || u.noRecord && u.end == l.end
		if l.ended || at < 0 || at == l.end || known || l.unsettled > 0 || now.Sub(u.since) < stalledAfter {
			continue
		}
		u.since = now
		all = append(all, stuckLane{lanePosition{l.topicPartition, l.topicID, at, l.countUnread()}, l.end})
	}
	return all
}

// noteUnread stores the time of the first record after a position. A zero time means that no record follows the
// position.
func (p *progress) noteUnread(r stuckLane, found time.Time) {
	p.lanes.withLane(r.topicPartition, func(l *lane) {
		if u := &l.firstUnread; u.offset == r.offset && l.deliveredOffset() == r.offset {
			u.time, u.noRecord, u.end = found, found.IsZero(), r.end
		}
	})
}

// firstBehind returns the time of the first record at or after a position, also if the record belongs to an open
// transaction. The result is zero if no record follows the position.
func (b *brokers) firstBehind(ctx context.Context, r lanePosition) (time.Time, error) {
	batches, err := b.firstBatches(ctx, r, true)
	if err != nil || len(batches) == 0 {
		return time.Time{}, err
	}
	return firstTime(batches)
}

var errNoTime = errors.New("the records have no time")

// firstTime returns the time of the first record of the first batch. If the topic uses the brokers' times, the result
// is the time of the batch.
func firstTime(batches []byte) (time.Time, error) {
	const brokersTime = 1 << 3 // bit in the attributes of a batch
	var batch kmsg.RecordBatch
	if err := batch.ReadFrom(batches); err != nil {
		return time.Time{}, err
	}
	at := batch.FirstTimestamp
	if batch.Attributes&brokersTime != 0 {
		at = batch.MaxTimestamp
	}
	if batch.Magic < 2 || at <= 0 {
		return time.Time{}, errNoTime
	}
	return time.UnixMilli(at).UTC(), nil
}
