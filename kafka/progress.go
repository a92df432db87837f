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

// progress computes how far lanes are in their logs, finds stopped lanes, and reports the results.
type progress struct {
	config *Config
	lanes  *lanes

	mu sync.Mutex // guards the field below; no other lock is taken while it is held
	// The final states of the lanes that ended since the last report.
	last []LaneState
}

// The method states returns the states of all lanes, including the final states of ended lanes.
func (p *progress) states() []LaneState {
	var states []LaneState
	p.lanes.withAll(func(all []*lane) {
		p.mu.Lock()
		states, p.last = p.last, nil
		p.mu.Unlock()
		for _, l := range all {
			if !l.ended {
				states = append(states, p.state(l))
			}
		}
	})
	return states
}

// recordEnded stores the final state of a lane for the next report. The caller holds lanes.mu.
func (p *progress) recordEnded(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = append(p.last, p.state(l))
}

// state returns the state of a lane. The caller holds lanes.mu.
func (p *progress) state(l *lane) LaneState {
	return LaneState{
		Topic: l.topic, Partition: l.partition, Committed: l.committed.offset, Delivered: l.deliveredOffset(), End: l.end,
		Unsettled: l.unsettled, Oldest: l.oldestDelivery(), Paused: l.paused, HeldUp: l.heldUp(p.config.ReadUncommitted), Fault: l.fault, Lost: l.ended,
	}
}

// askEnds requests the ends of the owned partitions. For lanes without a position, askEnds also requests the
// beginnings. The stable end is requested last: a stable end before the end means that a transaction is open.
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

// ownPartitions returns the partitions of lanes that are not gone. The result fresh contains the partitions without a
// position.
func (p *progress) ownPartitions() (own, fresh []topicPartition) {
	for l := range p.lanes.each {
		if l.ended {
			continue
		}
		own = append(own, l.topicPartition)
		if l.deliveredOffset() < 0 {
			fresh = append(fresh, l.topicPartition)
		}
	}
	return own, fresh
}

func (p *progress) noteEnds(asked time.Time, begins, ends, stable map[topicPartition]int64) {
	now := time.Now()
	for l := range p.lanes.each {
		if at, known := begins[l.topicPartition]; known && l.deliveredOffset() < 0 {
			l.delivered = at // without an offset of the group, the lane begins here
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

// isIdle implements source.Info.Idle: the source is idle when each lane is at its stable end, which is the start of the
// first open transaction or the end of the log. The second result contains the lanes that an open transaction blocks,
// and the stopped lanes. A member without lanes is idle.
func (s *Source) isIdle(ctx context.Context) (bool, []semel.Unfinished, error) {
	if settled, err := s.topicsAssigned(ctx); !settled {
		return false, nil, err
	}
	before := s.assignment()
	if before.client == nil {
		return false, nil, nil
	}
	if err := s.askEnds(ctx); err != nil {
		return false, nil, fmt.Errorf("kafka: the ends of the partitions are not known: %w", err)
	}
	behind, left, idle := s.progress.unfinishedLanes()
	for _, b := range behind {
		more, err := s.brokers.hasMore(ctx, b)
		var nowhere noLeaderError
		switch {
		case errors.As(err, &nowhere):
			more = true
			left = append(left, semel.Unfinished{Lane: b.lane(), Messages: b.unread, Reason: "cannot determine whether more records exist: " + err.Error()})
		case err != nil:
			return false, nil, fmt.Errorf("kafka: topic %s, partition %d: cannot determine whether more records exist: %w", b.topic, b.partition, err)
		}
		idle = idle && !more
	}
	return idle && s.assignment() == before, left, nil
}

// assignment identifies the current member and its lanes. Two assignments differ if the member was replaced or got
// other lanes after the first of them, for example while a request was in progress.
type assignment struct {
	client        *kgo.Client // nil if no member has received its assignment
	assignedLanes uint64
}

func (s *Source) assignment() assignment {
	return assignment{s.member.readingClient(), s.lanes.countAssigned()}
}

// lanePosition is a position in a lane, with the number of unread offsets after the position.
type lanePosition struct {
	topicPartition
	topicID [16]byte
	offset  int64
	unread  int64
}

// unfinishedLanes returns the lanes that have not reached their stable end, and the records that cannot be
// delivered. The result idle is false if a nacked message waits, or if a lane is handed over.
func (p *progress) unfinishedLanes() (behind []lanePosition, left []semel.Unfinished, idle bool) {
	idle = true
	for l := range p.lanes.each {
		limit, at := l.stable, l.deliveredOffset()
		if p.config.ReadUncommitted {
			limit = l.end
		}
		switch {
		case l.ended, l.skipLost: // the records will be delivered again, or the lane will skip lost records
			idle = false
		case l.broken != nil:
			left = append(left, l.newUnfinished(l.broken))
		case l.leaving, limit < 0:
			idle = false
		case l.paused && l.unsettled > 0: // the polled records wait for the delivered records
			if n := l.countUnread(); n != 0 || len(l.nacked) > 0 {
				left = append(left, semel.Unfinished{Lane: l.id.ID, Messages: n, Reason: "waits for a message before it"})
			}
		case len(l.ready) > 0, len(l.nacked) > 0:
			idle = false
		case at < limit && l.fault != nil:
			left = append(left, l.newUnfinished(l.fault))
		case at < limit:
			behind = append(behind, lanePosition{l.topicPartition, l.topicID, at, l.countUnread()})
		case limit < l.end:
			left = append(left, semel.Unfinished{Lane: l.id.ID, Messages: l.countUnread(), Reason: "held up by an open transaction, which its producer or an operator must end"})
		}
	}
	return behind, left, idle
}

// A stopped lane is not an error of the source: Fetch continues without an error. The log, LaneState.Fault
// and, when a process ends idle, the list of unfinished lanes report the fault with the name of the lane.

// logFaults logs each stopped lane: at once, and then once per standsEvery.
func (p *progress) logFaults(now time.Time) {
	for l := range p.lanes.each {
		if l.fault == nil || l.ended || !l.faultLogged.IsZero() && now.Sub(l.faultLogged) < standsEvery {
			continue
		}
		l.faultLogged = now
		p.config.Logger.Warn("a partition has stopped; the others continue",
			"group", p.config.Group, "lane", l.id.ID, "unread", l.countUnread(), "error", l.fault)
	}
}

// faultyLanes returns the stopped lanes.
func (p *progress) faultyLanes() []semel.Unfinished {
	var all []semel.Unfinished
	for l := range p.lanes.each {
		if l.fault != nil && !l.ended {
			all = append(all, l.newUnfinished(l.fault))
		}
	}
	return all
}

// noteHeldUp logs once that a transaction stays open at the lane's position. The caller holds lanes.mu.
func (p *progress) noteHeldUp(l *lane, now time.Time) {
	switch {
	case !l.heldUp(p.config.ReadUncommitted):
		l.heldUpSince = time.Time{}
	case l.heldUpSince.IsZero():
		l.heldUpSince, l.heldUpTold = now, false
	case !l.heldUpTold && now.Sub(l.heldUpSince) >= heldUpAfter:
		l.heldUpTold = true
		p.config.Logger.Warn("a transaction stays open and blocks the records after it; its producer must end it, or an operator (kafka-transactions.sh find-hanging, abort)",
			"group", p.config.Group, "lane", l.id.ID, "offset", l.stable, "end", l.end)
	}
}

// The client repeats a fetch that the brokers refuse with a temporary error, for example because a batch is damaged on
// their disks, and logs nothing. So the source itself sends a fetch for a lane that has unread records but makes no
// progress, and reports the brokers' answer.

// If a lane with unread records stays at its position for the time stalledAfter, the source sends a fetch for the lane.
// While the position stays the same, the source repeats the fetch at the interval stalledAfter.
const stalledAfter = time.Minute

// lastMove is the position of a lane, and the time since when the lane has been at this position although it has unread
// records.
type lastMove struct {
	offset int64
	since  time.Time
}

// askStalled sends fetches for lanes that make no progress. An error in the answer is a fault of the lane; if no broker
// answers, the source has a fault.
func (s *Source) askStalled(ctx context.Context) {
	for _, r := range s.progress.stalledLanes(time.Now()) {
		_, err := s.brokers.hasMore(ctx, r)
		if ctx.Err() != nil {
			return
		}
		var why error
		if err != nil {
			why = fmt.Errorf("kafka: topic %s, partition %d: nothing can be read after offset %d although records exist; reading is retried, and the other partitions continue: %w",
				r.topic, r.partition, r.offset, explain(err, r.topic, s.config.Group))
		}
		var answer *kerr.Error
		if err == nil || errors.As(err, &answer) {
			s.progress.setReadFault(r, why)
		} else {
			s.faults.complain(why)
		}
	}
}

// setReadFault stores the reason why the brokers refuse to read a lane. The parameter why is nil if the brokers
// would send the lane's records.
func (p *progress) setReadFault(r lanePosition, why error) {
	p.lanes.withLane(r.topicPartition, func(l *lane) {
		switch {
		case l.broken != nil || l.deliveredOffset() != r.offset:
		case why == nil:
			l.fault = nil
		default:
			l.setFault(why)
		}
	})
}

// stalledLanes returns the lanes that have made no progress for stalledAfter.
func (p *progress) stalledLanes(now time.Time) []lanePosition {
	var all []lanePosition
	for l := range p.lanes.each {
		at, limit := l.deliveredOffset(), l.stable
		if p.config.ReadUncommitted {
			limit = l.end
		}
		moved := l.lastMove.offset != at
		if moved && l.broken == nil {
			l.fault = nil
		}
		switch {
		case l.isBlocked() || l.broken != nil || l.full || l.overBudget || len(l.ready) > 0 || at < 0 || at >= limit:
			l.lastMove = lastMove{}
		case moved || l.lastMove.since.IsZero():
			l.lastMove = lastMove{at, now}
		case now.Sub(l.lastMove.since) >= stalledAfter:
			l.lastMove.since = now
			all = append(all, lanePosition{l.topicPartition, l.topicID, at, l.countUnread()})
		}
	}
	return all
}
