package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

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
	leader, err := b.leader(ctx, r.topicPartition)
	if err != nil {
		return time.Time{}, err
	}
	request := b.fetchAt(r)
	request.IsolationLevel = 0
	response, err := request.RequestWith(ctx, leader)
	if err == nil {
		err = kerr.ErrorForCode(response.ErrorCode)
	}
	if err != nil {
		return time.Time{}, err
	}
	for _, topic := range response.Topics {
		for _, p := range topic.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return time.Time{}, err
			}
			if len(p.RecordBatches) > 0 {
				return firstTime(p.RecordBatches)
			}
		}
	}
	return time.Time{}, nil
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
