package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// How far a lane is, by the broker's time, keeps its markers from being removed: see
// source.Info.Ages. So whatever is not known for certain is told as older than it may
// be, or not at all, and never as settled.

// endKnown is for how long it counts that a lane has got to the end of its log, from
// when the brokers were asked for it. A source that is cut off hears nothing of what
// is written meanwhile, and may not say that all of it is settled.
const endKnown = 4 * askEvery

// ages is source.Info.Ages. A lane has its topic's and partition's name, as in
// "payments/3". Its time is that of the oldest record that was read and of which the
// group does not know yet that it is done, taken as no later than its delivery, as
// producers' clocks may be ahead. If there is none it is zero while the lane is at the
// end of its log, as far as that was asked for within the last minute; and else the
// time of the first record behind it, or, until that is known, of those that were
// read last. What is written later is no older than that where the topic has
// the brokers' times (LogAppendTime); with those of producers (CreateTime) a clock
// that is behind may write older ones. A lane that stands still is never settled.
//
// Not known, and not among the lanes, is one of which nothing was read since it was
// given and of which the brokers have not said whether there is anything to read, or
// how old it is; and one with a record that has no time. all is also false while the
// group has not said which lanes there are, and when no broker has answered for a
// minute: who was cut off may have lost lanes, and none is no progress.
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

// age is the time of the lane's oldest record that is not settled, or not read; zero if
// there is none.
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

// ageOfUnread is the time of the first record that was not read.
func (l *lane) ageOfUnread(now time.Time) (oldest time.Time, known bool) {
	switch {
	case l.broken == nil && l.atEnd(now):
		return time.Time{}, true
	case l.firstUnread.at == l.reached() && !l.firstUnread.time.IsZero():
		return l.firstUnread.time, true
	}
	return l.taken, !l.taken.IsZero()
}

// atEnd reports whether there was nothing to read when the brokers were last asked, and
// that is not long ago. A log can end behind its last record.
func (l *lane) atEnd(now time.Time) bool {
	at := l.reached()
	if at < 0 || l.endAsked.IsZero() || now.Sub(l.endAsked) > endKnown {
		return false
	}
	return at == l.end || l.firstUnread.none && l.firstUnread.at == at && l.firstUnread.end == l.end
}

// time is the broker's time of a record that is not settled, and no later than its
// delivery; zero where it has none.
func (r *record) time() time.Time {
	if r.written.IsZero() || r.at.IsZero() {
		return r.written
	}
	return earlier(r.written, r.at)
}

// time is that of a settled record; zero where it has none, or is not settled.
func (s *slot) time() time.Time {
	if s.settledTime == 0 {
		return time.Time{}
	}
	return time.UnixMilli(s.settledTime).UTC()
}

// earlier is the earlier of two times. One that is zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// A lane that stands where there is more to read, because it stands still, is held up
// by a transaction, or only seems to be behind, does not tell how old what it has not
// read is. So the brokers are asked for it, beside the client.

// firstUnread is the first record behind where a lane has got to, as the brokers
// answered.
type firstUnread struct {
	// at is where the lane had got to, since then or since it was asked for last.
	at    int64
	since time.Time
	// time is the record's; zero while it is not known, or there is none.
	time time.Time
	// none: there was no record up to end, which was the end of the log.
	none bool
	end  int64
}

// askUnread asks for the first records behind lanes that stand, of which nothing else
// tells how old they are. What is not answered is asked for again.
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

// standingLane is where a lane stands, and where its log ended then.
type standingLane struct {
	lanePosition
	end int64
}

// standing are the lanes that have stood for stalledAfter, with nothing delivered, where
// there is more to read.
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

// noteUnread notes the time of the first record behind a place, zero if there is none.
func (p *progress) noteUnread(r standingLane, found time.Time) {
	p.lanes.living(r.topicPartition, func(l *lane) {
		if u := &l.firstUnread; u.at == r.at && l.reached() == r.at {
			u.time, u.none, u.end = found, found.IsZero(), r.end
		}
	})
}

// firstBehind is the time of the first record at a place or behind it, also one of a
// transaction that is open; zero if there is none.
func (b *brokers) firstBehind(ctx context.Context, r lanePosition) (time.Time, error) {
	batches, err := b.firstBatches(ctx, r, true)
	if err != nil || len(batches) == 0 {
		return time.Time{}, err
	}
	return firstTime(batches)
}

var errNoTime = errors.New("the records have no time")

// firstTime is the time of the first record of the first batch. Where the topic has the
// brokers' times it is that of the batch.
func firstTime(batches []byte) (time.Time, error) {
	const brokersTime = 1 << 3 // of a batch's attributes
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
