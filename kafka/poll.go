package kafka

import (
	"context"
	"fmt"
	"sync"

	"github.com/semel-go/semel/kafka/internal/hook"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kgo"
)

// gate prevents that a poll and an assignment of partitions happen at the same time. A poll takes records from the
// client, and then adds the records to a lane. If the partition were lost and assigned again between the two steps of a
// poll, the new lane would get records that follow the position of the old lane. So an assignment interrupts the
// current poll, waits until the polled records are added to lanes, and prevents further polls until the new lanes
// exist.
type gate struct {
	mu        sync.Mutex         // guards the fields below
	interrupt context.CancelFunc // interrupts the current poll
	ended     chan struct{}      // closed when the current poll ends; nil if no poll is in progress
	roused    bool               // true if the next poll must return at once
	holders   int
	free      chan struct{} // closed when no assignment holds the gate
}

// enter begins a poll. If enter returns a nil context, the caller must look for other work before it polls.
func (g *gate) enter(ctx context.Context) (context.Context, context.CancelFunc) {
	g.mu.Lock()
	for g.holders > 0 {
		free := g.free
		g.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return nil, nil
		}
		g.mu.Lock()
	}
	defer g.mu.Unlock()
	if g.roused {
		g.roused = false
		return nil, nil
	}
	inner, cancel := context.WithCancel(ctx)
	g.interrupt, g.ended = cancel, make(chan struct{})
	return inner, cancel
}

// leave ends a poll. The caller has added the polled records to lanes.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.interrupt()
	close(g.ended)
	g.interrupt, g.ended, g.roused = nil, nil, false
}

// wakeUp ends the current poll; if no poll is in progress, the next poll returns at once.
func (g *gate) wakeUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.roused = true
	if g.interrupt != nil {
		g.interrupt()
	}
}

// hold waits for the end of the current poll, and prevents further polls until release is called.
func (g *gate) hold() {
	g.mu.Lock()
	if g.holders++; g.holders == 1 {
		g.free = make(chan struct{})
	}
	ended := g.ended
	if g.interrupt != nil {
		g.interrupt()
	}
	g.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holders--; g.holders == 0 {
		close(g.free)
	}
}

// intake adds the polled records to lanes, sets the partitions that the client fetches, and stops lanes that cannot be
// read.
type intake struct {
	config *Config
	budget *hook.Budget
	member *member
	faults *faultList
	lanes  *lanes

	mu sync.Mutex // guards the field below; no other lock is taken while it is held
	// The batches that could not be read. The map is kept when lanes end.
	corruptBatches map[topicPartition]corruptBatch
}

// flow pauses or resumes a lane.
func (i *intake) flow(which source.Lane, on bool) {
	for l := range i.lanes.each {
		if l.id == which && !l.ended {
			l.paused = !on
			i.reflow(l)
		}
	}
}

// reflow pauses or resumes the partition of a lane in the client. The caller holds lanes.mu.
func (i *intake) reflow(l *lane) {
	client := i.member.currentClient()
	switch {
	case client == nil:
	case l.paused || l.full || l.overBudget || l.broken != nil:
		client.PauseFetchPartitions(l.asMap())
	default:
		client.ResumeFetchPartitions(l.asMap())
	}
}

// refill resumes a lane whose window was full and now has room. The caller holds lanes.mu.
func (i *intake) refill(l *lane) {
	if l.full && len(l.window) <= resumeWindow {
		l.full = false
		i.reflow(l)
	}
}

// pauseOverBudget pauses a lane until the budget allows its next batch. The caller holds lanes.mu.
func (i *intake) pauseOverBudget(l *lane) {
	if l != nil && !l.ended && !l.overBudget {
		l.overBudget = true
		i.reflow(l)
	}
}

// resumeInBudget resumes lanes that were paused for the budget. If much of the budget is free, all these lanes are
// resumed. If no other records can be delivered, one lane is resumed. The caller holds lanes.mu.
func (i *intake) resumeInBudget(lanes []*lane, nothing bool) {
	all, one := i.budget.Fits()
	one = one && nothing
	for _, l := range lanes {
		if l.overBudget && (all || one) {
			l.overBudget, one = false, false
			i.reflow(l)
		}
	}
}

// stopLane stops a lane until this process loses the lane, and stores the reason. The caller holds lanes.mu.
func (i *intake) stopLane(l *lane, why error) {
	l.broken = why
	l.setFault(why)
	i.reflow(l) // otherwise the client would request the partition without a pause
	i.lanes.touch()
}

// accept adds polled records to their lanes.
func (i *intake) accept(client *kgo.Client, fetches kgo.Fetches) {
	i.lanes.withAll(func([]*lane) {
		if !i.member.isCurrent(client) {
			return
		}
		for f := range fetches {
			for j := range fetches[f].Topics {
				topic := &fetches[f].Topics[j]
				for k := range topic.Partitions {
					i.acceptPartition(topic, &topic.Partitions[k])
				}
			}
		}
	})
}

// acceptPartition adds the polled records of a partition to its lane. The caller holds lanes.mu.
func (i *intake) acceptPartition(topic *kgo.FetchTopic, p *kgo.FetchPartition) {
	l := i.lanes.find(topicPartition{topic.Topic, p.Partition})
	if l != nil && !l.ended {
		i.acceptRecords(l, topic.TopicID, p)
	}
	if p.Err != nil { // the error concerns later records
		i.handleFetchError(l, topic.Topic, p)
	}
}

func (i *intake) acceptRecords(l *lane, topicID [16]byte, p *kgo.FetchPartition) {
	if p.HighWatermark > 0 {
		l.end, l.stable = max(l.end, p.HighWatermark), max(l.stable, p.LastStableOffset)
	}
	if len(p.Records) == 0 || l.broken != nil { // the next lane of the partition reads these records
		return
	}
	if reason := l.rejectReason(topicID, p.Records); reason != "" {
		l.broken = fmt.Errorf("kafka: topic %s, partition %d: %s", l.topic, l.partition, reason)
		i.faults.add(l.broken)
		i.member.demandReplacement("records cannot follow those before them", l.topicPartition)
		return
	}
	before := l.heldBytes
	l.add(p.Records, i.config.MaxRecord)
	i.budget.Hold(l.heldBytes - before)
	if !l.full && len(l.window) > mostWindow {
		l.full = true
		i.reflow(l)
	}
}
