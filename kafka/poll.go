package kafka

import (
	"context"
	"fmt"
	"sync"

	"github.com/semel-go/semel/kafka/internal/hook"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kgo"
)

// gate makes polls and assignments exclude each other. A poll takes records out of the client, and only then adds them
// to a lane. If the partition was lost and assigned again in between, the new lane would get records after the position
// of its former epoch. So an assignment interrupts the current poll, waits until its records are added to lanes, and
// prevents the next poll until the new lanes exist.
type gate struct {
	mu        sync.Mutex         // guards the fields below
	interrupt context.CancelFunc // interrupts the current poll
	ended     chan struct{}      // closed when the current poll ends; nil if there is none
	roused    bool               // the next poll returns at once
	holders   int
	free      chan struct{} // closed when the gate is not held
}

// enter begins a poll. If it returns no context, the caller looks for work again.
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

// leave ends a poll, after its records were added to lanes.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.interrupt()
	close(g.ended)
	g.interrupt, g.ended, g.roused = nil, nil, false
}

// rouse ends the current poll, or makes the next one return at once.
func (g *gate) rouse() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.roused = true
	if g.interrupt != nil {
		g.interrupt()
	}
}

// hold prevents polls until release, and returns when no poll is in progress.
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

// intake adds the polled records to lanes, and tells the client what to fetch. intake stops lanes that cannot be
// read.
type intake struct {
	config *Config
	budget *hook.Budget
	member *member
	faults *faultList
	lanes  *lanes

	mu sync.Mutex // guards the field below; no other lock is taken while it is held
	// corruptBatches contains batches that could not be read. corruptBatches outlasts lanes.
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

// reflow tells the client whether to fetch a lane. The caller holds lanes.mu.
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

// refill resumes a lane whose window was full. The caller holds lanes.mu.
func (i *intake) refill(l *lane) {
	if l.full && len(l.window) <= resumeWindow {
		l.full = false
		i.reflow(l)
	}
}

// pauseOverBudget pauses a lane until the budget allows its next batch. The caller holds lanes.mu.
func (i *intake) pauseOverBudget(l *lane) {
	if l != nil && !l.gone && !l.overBudget {
		l.overBudget = true
		i.reflow(l)
	}
}

// resumeInBudget resumes lanes that were paused for the budget: all lanes if much of the budget is free, or one lane if
// nothing else can be delivered. The caller holds lanes.mu.
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

// standStill stops a lane for as long as this process owns it, and stores why. The caller holds lanes.mu.
func (i *intake) standStill(l *lane, why error) {
	l.broken = why
	l.setFault(why)
	i.reflow(l) // otherwise the client would request it without a pause
	i.lanes.touch()
}

// accept adds polled records to their lanes.
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

// acceptPartition adds the records of a partition. The caller holds lanes.mu.
func (i *intake) acceptPartition(topic *kgo.FetchTopic, p *kgo.FetchPartition) {
	l := i.lanes.at(topicPartition{topic.Topic, p.Partition})
	if l != nil && !l.gone {
		i.acceptRecords(l, topic.TopicID, p)
	}
	if p.Err != nil { // the error is about what follows these records
		i.failed(l, topic.Topic, p)
	}
}

func (i *intake) acceptRecords(l *lane, topicID [16]byte, p *kgo.FetchPartition) {
	if p.HighWatermark > 0 {
		l.end, l.stable = max(l.end, p.HighWatermark), max(l.stable, p.LastStableOffset)
	}
	if len(p.Records) == 0 || l.broken != nil { // the owner after a broken lane reads them
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
