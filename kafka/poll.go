package kafka

import (
	"context"
	"fmt"
	"sync"

	"github.com/semel-go/semel/kafka/internal/hook"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kgo"
)

// gate lets polls and assignments take turns. A poll takes records out of the
// client, and only then are they given to a lane; a partition that was lost and
// assigned anew in between would get records from the place where its former
// epoch stood. So an assignment ends the poll under way, waits until its
// records are given to lanes, and keeps the next poll out until the new lanes
// are there.
type gate struct {
	mu        sync.Mutex         // guards the rest
	interrupt context.CancelFunc // of the poll under way
	ended     chan struct{}      // of the poll under way; nil without one
	roused    bool               // the next poll returns at once
	holders   int
	free      chan struct{} // closed when no one holds
}

// enter begins a poll. Without a context to poll in, the caller looks for work
// again.
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

// leave ends a poll: its records are given to lanes.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.interrupt()
	close(g.ended)
	g.interrupt, g.ended, g.roused = nil, nil, false
}

// rouse ends the poll under way, or lets the next one return at once.
func (g *gate) rouse() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.roused = true
	if g.interrupt != nil {
		g.interrupt()
	}
}

// hold keeps polls out until release, and returns when none is under way.
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

// intake gives lanes what the client has polled, and tells the client what to
// fetch of them. What of a lane cannot be read ends here.
type intake struct {
	config *Config
	budget *hook.Budget
	member *member
	faults *faultList
	lanes  *lanes

	mu sync.Mutex // guards the rest; no other lock is taken under it
	// corruptBatches are those that could not be read. They outlast their lanes.
	corruptBatches map[topicPartition]corruptBatch
}

// flow pauses or resumes a lane.
func (i *intake) flow(which source.Lane, on bool) {
	for l := range i.lanes.each {
		if l.id == which && !l.gone {
			l.paused = !on
			i.reflow(l)
		}
	}
}

// reflow tells the client what it should fetch of a lane. Called with lanes.mu
// held.
func (i *intake) reflow(l *lane) {
	client := i.member.current()
	switch {
	case client == nil:
	case l.paused || l.full || l.overBudget || l.broken != nil:
		client.PauseFetchPartitions(l.asMap())
	default:
		client.ResumeFetchPartitions(l.asMap())
	}
}

// refill resumes a lane whose window was full. Called with lanes.mu held.
func (i *intake) refill(l *lane) {
	if l.full && len(l.window) <= resumeWindow {
		l.full = false
		i.reflow(l)
	}
}

// pauseOverBudget stops reading a lane until there is room for its next batch.
// Called with lanes.mu held.
func (i *intake) pauseOverBudget(l *lane) {
	if l != nil && !l.gone && !l.overBudget {
		l.overBudget = true
		i.reflow(l)
	}
}

// resumeInBudget goes on with lanes for whose batches there was no room: with all
// when much of the budget is free, and with one when nothing else is there to be
// delivered. Called with lanes.mu held.
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

// standStill ends reading a lane, and says why for as long as it is here.
// Called with lanes.mu held.
func (i *intake) standStill(l *lane, why error) {
	l.broken = why
	l.setFault(why)
	i.reflow(l) // the client would ask for it without a pause
	i.lanes.touch()
}

// accept gives polled records to their lanes.
func (i *intake) accept(client *kgo.Client, fetches kgo.Fetches) {
	i.lanes.with(func([]*lane) {
		if !i.member.is(client) {
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

// acceptPartition is called with lanes.mu held.
func (i *intake) acceptPartition(topic *kgo.FetchTopic, p *kgo.FetchPartition) {
	l := i.lanes.at(topicPartition{topic.Topic, p.Partition})
	if l != nil && !l.gone {
		i.acceptRecords(l, topic.TopicID, p)
	}
	if p.Err != nil { // of what is behind these records
		i.failed(l, topic.Topic, p)
	}
}

func (i *intake) acceptRecords(l *lane, topicID [16]byte, p *kgo.FetchPartition) {
	if p.HighWatermark > 0 {
		l.end, l.stable = max(l.end, p.HighWatermark), max(l.stable, p.LastStableOffset)
	}
	if len(p.Records) == 0 || l.broken != nil { // who comes after a broken lane reads them
		return
	}
	if reason := l.unfit(topicID, p.Records); reason != "" {
		l.broken = fmt.Errorf("kafka: topic %s, partition %d: %s", l.topic, l.partition, reason)
		i.faults.add(l.broken)
		i.member.demandReplacement("records cannot follow those before them", l.topicPartition)
		return
	}
	before := l.held
	l.add(p.Records, i.config.MaxRecord)
	i.budget.Hold(l.held - before)
	if !l.full && len(l.window) > mostWindow {
		l.full = true
		i.reflow(l)
	}
}
