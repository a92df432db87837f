package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The age of a lane prevents the removal of its markers; see source.Info.Ages. So a value that is not certain is
// reported as older than it may be, or not at all, and never as settled.

// endKnown is how long an answer about the end of a log stays valid. A source that has lost its brokers does not learn
// of new records, so it must not report its lanes as settled any longer.
const endKnown = 4 * askEvery

// ages implements source.Info.Ages. A lane is named by topic and partition, as in "payments/3". Its age is the first of
// these that applies:
//
//   - If records are unsettled, or their commit is not confirmed: the time of the oldest such record, but not later
//     than its delivery, because producers' clocks may be ahead.
//   - If the lane was at the end of its log, according to an answer of the last minute: zero.
//   - Otherwise the time of the first unread record or, until that is known, of the records that were read last.
//     With brokers' times (LogAppendTime) no later record is older than that; with producers' times (CreateTime) a
//     slow clock may write older ones.
//
// A stopped lane never counts as settled. A lane is not reported if nothing was read since it was assigned and the
// brokers have not reported whether it has unread records or how old they are, or if one of its records has no time.
//
// all is false while the group has not assigned lanes, and when no broker has answered for a minute: a disconnected
// process may have lost lanes.
func (s *Source) ages() (lanes []source.LaneAge, all bool) {
	now, before := time.Now(), s.assignment()
	lanes, all = s.progress.ages(now)
	all = all && before.client != nil && s.assignment() == before
	return lanes, all && s.brokers.lastAnswer.Within(endKnown, now)
}

func (p *progress) ages(now time.Time) (ages []source.LaneAge, all bool) {
	all = true
	for l := range p.lanes.each {
		if l.gone {
			continue
		}
		oldest, known := l.age(now)
		if known {
			ages = append(ages, source.LaneAge{Lane: l.id.ID, Oldest: oldest})
		}
		all = all && known
	}
	return ages, all
}

// age returns the time of the lane's oldest record that is not settled or not read; zero if there is none.
func (l *lane) age(now time.Time) (oldest time.Time, known bool) {
	oldest = earlier(l.uncommitted, l.committing)
	held := false
	for i := range l.window {
		s := &l.window[i]
		at := s.time()
		if s.record != nil {
			held, at = true, s.record.time()
			if at.IsZero() {
				return time.Time{}, false
			}
		}
		oldest = earlier(oldest, at)
	}
	if held {
		return oldest, true
	}
	unread, known := l.ageOfUnread(now)
	return earlier(oldest, unread), known
}

// ageOfUnread returns the time of the first unread record.
func (l *lane) ageOfUnread(now time.Time) (oldest time.Time, known bool) {
	switch {
	case l.broken == nil && l.atEnd(now):
		return time.Time{}, true
	case l.firstUnread.at == l.reached() && !l.firstUnread.time.IsZero():
		return l.firstUnread.time, true
	}
	return l.taken, !l.taken.IsZero()
}

// atEnd reports whether a recent answer of the brokers said that the lane has nothing more to read. The end of a log can
// be after its last record.
func (l *lane) atEnd(now time.Time) bool {
	at := l.reached()
	if at < 0 || l.endAsked.IsZero() || now.Sub(l.endAsked) > endKnown {
		return false
	}
	return at == l.end || l.firstUnread.none && l.firstUnread.at == at && l.firstUnread.end == l.end
}

// time returns the broker's time of an unsettled record, but not later than its delivery; zero if it has none.
func (r *record) time() time.Time {
	if r.written.IsZero() || r.at.IsZero() {
		return r.written
	}
	return earlier(r.written, r.at)
}

// time returns the time of a settled record; zero if it has none or is unsettled.
func (s *slot) time() time.Time {
	if s.settledTime == 0 {
		return time.Time{}
	}
	return time.UnixMilli(s.settledTime).UTC()
}

// earlier returns the earlier of two times. A zero time counts as missing.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// If a lane has unread records but does not move, because it is stopped, waits for a transaction, or has only a gap
// before its end, the age of its unread records is unknown. The source then asks the brokers with separate requests.

// firstUnread is the brokers' answer about the first record after a lane's position.
type firstUnread struct {
	// at is the lane's position when the request was made, updated by each later request.
	at    int64
	since time.Time
	// time is the record's time; zero if it is not known, or if there is no record.
	time time.Time
	// none: the log had no record before its end, which was at end.
	none bool
	end  int64
}

// askUnread asks for the first record after the position of each standing lane whose age is otherwise unknown.
// Unanswered requests are repeated later.
func (s *Source) askUnread(ctx context.Context) {
	for _, r := range s.progress.standing(time.Now()) {
		found, err := s.brokers.firstBehind(ctx, r.lanePosition)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			s.progress.noteUnread(r, found)
		}
	}
}

// standingLane is the position of a standing lane, and the end of its log at that time.
type standingLane struct {
	lanePosition
	end int64
}

// standing returns the lanes that have unread records but have delivered nothing for stalledAfter.
func (p *progress) standing(now time.Time) []standingLane {
	var all []standingLane
	for l := range p.lanes.each {
		at := l.reached()
		if l.firstUnread.at != at || l.firstUnread.since.IsZero() {
			l.firstUnread = firstUnread{at: at, since: now}
		}
		u := &l.firstUnread
		known := !u.time.IsZero() || u.none && u.end == l.end
		if l.gone || at < 0 || at == l.end || known || l.unsettled > 0 || now.Sub(u.since) < stalledAfter {
			continue
		}
		u.since = now
		all = append(all, standingLane{lanePosition{l.topicPartition, l.topicID, at, l.unread()}, l.end})
	}
	return all
}

// noteUnread stores the time of the first record after a position; zero if there is none.
func (p *progress) noteUnread(r standingLane, found time.Time) {
	p.lanes.living(r.topicPartition, func(l *lane) {
		if u := &l.firstUnread; u.at == r.at && l.reached() == r.at {
			u.time, u.none, u.end = found, found.IsZero(), r.end
		}
	})
}

// firstBehind returns the time of the first record at or after a position, including records of open transactions; zero
// if there is none.
func (b *brokers) firstBehind(ctx context.Context, r lanePosition) (time.Time, error) {
	batches, err := b.firstBatches(ctx, r, true)
	if err != nil || len(batches) == 0 {
		return time.Time{}, err
	}
	return firstTime(batches)
}

var errNoTime = errors.New("the records have no time")

// firstTime returns the time of the first record of the first batch. If the topic uses the brokers' times, this is the
// time of the batch.
func firstTime(batches []byte) (time.Time, error) {
	const brokersTime = 1 << 3 // bit of a batch's attributes
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
