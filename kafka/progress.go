package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// progress is where lanes have got to in their logs, which of them do not go on,
// and what is told of that.
type progress struct {
	config *Config
	lanes  *lanes

	mu sync.Mutex // guards the rest; no other lock is taken under it
	// last are the states of lanes that ended since the last report.
	last []LaneState
}

// states are of all lanes, and for the last time of those that ended.
func (p *progress) states() []LaneState {
	var states []LaneState
	p.lanes.with(func(all []*lane) {
		p.mu.Lock()
		states, p.last = p.last, nil
		p.mu.Unlock()
		for _, l := range all {
			if !l.gone {
				states = append(states, p.state(l))
			}
		}
	})
	return states
}

// ended notes how a lane ended. Called with lanes.mu held.
func (p *progress) ended(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = append(p.last, p.state(l))
}

// state is called with lanes.mu held.
func (p *progress) state(l *lane) LaneState {
	return LaneState{
		Topic: l.topic, Partition: l.partition, Committed: l.committed.offset, Delivered: l.reached(), End: l.end,
		Unsettled: l.unsettled, Oldest: l.oldest(), Paused: l.paused, HeldUp: l.heldUp(p.config.ReadUncommitted), Fault: l.fault, Lost: l.gone,
	}
}

// askEnds asks where own partitions end and, of those of which it is not known
// yet, begin. What is stable is asked for last: if it is before the end, a
// transaction is open.
func (s *Source) askEnds(ctx context.Context) error {
	asked := time.Now()
	own, fresh := s.progress.ownPartitions()
	ends, err := s.brokers.listOffsets(ctx, own, atEnd, false)
	if err != nil {
		return err
	}
	stable := ends
	if !s.config.ReadUncommitted {
		if stable, err = s.brokers.listOffsets(ctx, own, atEnd, true); err != nil {
			return err
		}
	}
	begins, err := s.brokers.listOffsets(ctx, fresh, atBegin, false)
	if err != nil {
		return err
	}
	s.progress.noteEnds(asked, begins, ends, stable)
	return nil
}

// ownPartitions are the partitions of living lanes; fresh are those that have got
// nowhere yet.
func (p *progress) ownPartitions() (own, fresh []topicPartition) {
	for l := range p.lanes.each {
		if l.gone {
			continue
		}
		own = append(own, l.topicPartition)
		if l.reached() < 0 {
			fresh = append(fresh, l.topicPartition)
		}
	}
	return own, fresh
}

func (p *progress) noteEnds(asked time.Time, begins, ends, stable map[topicPartition]int64) {
	now := time.Now()
	for l := range p.lanes.each {
		if at, known := begins[l.topicPartition]; known && l.reached() < 0 {
			l.delivered = at // the group has no offset, so this is where the lane begins
		}
		if at, known := ends[l.topicPartition]; known {
			l.end, l.endAsked = at, asked
		}
		if at, known := stable[l.topicPartition]; known {
			l.stable = at
		}
		p.noteHeldUp(l, now)
	}
}

// isIdle is source.Info.Idle: the source is idle when each of its lanes is at
// its stable end, which is where an open transaction begins, or the end of the
// log. Left are lanes that an open transaction holds up and, as faults, those
// that stand still. A member without lanes is idle.
func (s *Source) isIdle(ctx context.Context) (bool, []semel.Unfinished, error) {
	if settled, err := s.topicsShared(ctx); !settled {
		return false, nil, err
	}
	before := s.assignment()
	if before.client == nil {
		return false, nil, nil
	}
	if err := s.askEnds(ctx); err != nil {
		return false, nil, fmt.Errorf("kafka: where the partitions end is not known: %w", err)
	}
	behind, left, idle := s.progress.remains()
	for _, b := range behind {
		more, err := s.brokers.more(ctx, b)
		var nowhere noLeaderError
		switch {
		case errors.As(err, &nowhere):
			more = true
			left = append(left, semel.Unfinished{Lane: b.lane(), Messages: b.unread, Reason: "whether there is more is not known: " + err.Error()})
		case err != nil:
			return false, nil, fmt.Errorf("kafka: topic %s, partition %d: whether there is more is not known: %w", b.topic, b.partition, err)
		}
		idle = idle && !more
	}
	return idle && s.assignment() == before, left, nil
}

// assignment is who reads what. While the brokers answered, a member may have
// been replaced, or given lanes.
type assignment struct {
	client *kgo.Client // nil where none was told what it reads, and goes on
	given  uint64
}

func (s *Source) assignment() assignment { return assignment{s.member.reading(), s.lanes.given()} }

// lanePosition is where a lane has got to.
type lanePosition struct {
	topicPartition
	topicID [16]byte
	at      int64
	unread  int64
}

// remains are the lanes that have not got to their stable end, and what cannot
// be delivered. It is not idle where something was handed back, or moves.
func (p *progress) remains() (behind []lanePosition, left []semel.Unfinished, idle bool) {
	idle = true
	for l := range p.lanes.each {
		limit, at := l.stable, l.reached()
		if p.config.ReadUncommitted {
			limit = l.end
		}
		switch {
		case l.gone, l.skipsLost: // it is to come again, or goes on behind what is lost
			idle = false
		case l.broken != nil:
			left = append(left, l.left(l.broken))
		case l.leaving, limit < 0:
			idle = false
		case l.paused && l.unsettled > 0: // what it has waits for what was delivered
			if n := l.unread(); n != 0 || len(l.back) > 0 {
				left = append(left, semel.Unfinished{Lane: l.id.ID, Messages: n, Reason: "waits for a message before it"})
			}
		case len(l.ready) > 0, len(l.back) > 0:
			idle = false
		case at < limit && l.fault != nil:
			left = append(left, l.left(l.fault))
		case at < limit:
			behind = append(behind, lanePosition{l.topicPartition, l.topicID, at, l.unread()})
		case limit < l.end:
			left = append(left, semel.Unfinished{Lane: l.id.ID, Messages: l.unread(), Reason: "held up by an open transaction, which its producer or an operator must end"})
		}
	}
	return behind, left, idle
}

// A lane that stands still is not a source that does not work: Fetch goes on
// without an error, and the fault is told by the lane's name: in the log, to
// Observe, as a LaneState, and as what is left where a run ends idle.

// logFaults logs lanes that stand still, each at once and then seldom.
func (p *progress) logFaults(now time.Time) {
	for l := range p.lanes.each {
		if l.fault == nil || l.gone || !l.faultLogged.IsZero() && now.Sub(l.faultLogged) < standsEvery {
			continue
		}
		l.faultLogged = now
		p.config.Logger.Warn("a partition stands still; the others go on",
			"group", p.config.Group, "lane", l.id.ID, "unread", l.unread(), "error", l.fault)
	}
}

// faulty are the lanes that stand still.
func (p *progress) faulty() []semel.Unfinished {
	var all []semel.Unfinished
	for l := range p.lanes.each {
		if l.fault != nil && !l.gone {
			all = append(all, l.left(l.fault))
		}
	}
	return all
}

// noteHeldUp logs once that a transaction stays open. Called with lanes.mu held.
func (p *progress) noteHeldUp(l *lane, now time.Time) {
	switch {
	case !l.heldUp(p.config.ReadUncommitted):
		l.heldUpSince = time.Time{}
	case l.heldUpSince.IsZero():
		l.heldUpSince, l.heldUpTold = now, false
	case !l.heldUpTold && now.Sub(l.heldUpSince) >= heldUpAfter:
		l.heldUpTold = true
		p.config.Logger.Warn("a transaction stays open and holds up what is behind it; its producer must end it, or an operator (kafka-transactions.sh find-hanging, abort)",
			"group", p.config.Group, "lane", l.id.ID, "offset", l.stable, "end", l.end)
	}
}

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
