package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// The client fetches again, without a word, what the brokers refuse with an
// error that may pass, such as a batch that is damaged on their disks. So a lane
// that does not move although something is behind it is asked for beside the
// client, and what the brokers answer is told.

// stalledAfter is how long a lane may stand where there is more to read before
// it is asked for, and how often again.
const stalledAfter = time.Minute

// lastMove is since when a lane has not moved where there is more to read.
type lastMove struct {
	at    int64
	since time.Time
}

// askStalled asks for lanes that do not move. What the brokers answer is of the
// lane; where they do not answer, the source does not work.
func (s *Source) askStalled(ctx context.Context) {
	for _, r := range s.progress.stalled(time.Now()) {
		_, err := s.brokers.more(ctx, r)
		if ctx.Err() != nil {
			return
		}
		var why error
		if err != nil {
			why = fmt.Errorf("kafka: topic %s, partition %d: nothing is read behind offset %d although records are there; it is tried again and again, and the other partitions go on: %w",
				r.topic, r.partition, r.at, explain(err, r.topic, s.config.Group))
		}
		var answer *kerr.Error
		if err == nil || errors.As(err, &answer) {
			s.progress.refused(r, why)
		} else {
			s.faults.complain(why)
		}
	}
}

// refused notes why a lane is not read, nil if the brokers would send it.
func (p *progress) refused(r lanePosition, why error) {
	p.lanes.living(r.topicPartition, func(l *lane) {
		switch {
		case l.broken != nil || l.reached() != r.at:
		case why == nil:
			l.fault = nil
		default:
			l.setFault(why)
		}
	})
}

// stalled are the lanes that have stood for stalledAfter.
func (p *progress) stalled(now time.Time) []lanePosition {
	var all []lanePosition
	for l := range p.lanes.each {
		at, limit := l.reached(), l.stable
		if p.config.ReadUncommitted {
			limit = l.end
		}
		moved := l.lastMove.at != at
		if moved && l.broken == nil {
			l.fault = nil
		}
		switch {
		case l.blocked() || l.broken != nil || l.full || l.overBudget || len(l.ready) > 0 || at < 0 || at >= limit:
			l.lastMove = lastMove{}
		case moved || l.lastMove.since.IsZero():
			l.lastMove = lastMove{at, now}
		case now.Sub(l.lastMove.since) >= stalledAfter:
			l.lastMove.since = now
			all = append(all, lanePosition{l.topicPartition, l.topicID, at, l.unread()})
		}
	}
	return all
}
