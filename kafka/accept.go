package kafka

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// accept gives polled records to their lanes.
func (ls *lanes) accept(client *kgo.Client, fetches kgo.Fetches) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.member.is(client) {
		return
	}
	for i := range fetches {
		for j := range fetches[i].Topics {
			topic := &fetches[i].Topics[j]
			for k := range topic.Partitions {
				ls.acceptPartition(topic, &topic.Partitions[k])
			}
		}
	}
}

func (ls *lanes) acceptPartition(topic *kgo.FetchTopic, p *kgo.FetchPartition) {
	l := ls.byPartition[topicPartition{topic.Topic, p.Partition}]
	if l != nil && !l.gone {
		ls.acceptRecords(l, topic.TopicID, p)
	}
	if p.Err != nil { // of what is behind these records
		ls.failed(l, topic.Topic, p)
	}
}

func (ls *lanes) acceptRecords(l *lane, topicID [16]byte, p *kgo.FetchPartition) {
	if p.HighWatermark > 0 {
		l.end, l.stable = max(l.end, p.HighWatermark), max(l.stable, p.LastStableOffset)
	}
	if len(p.Records) == 0 || l.broken != nil { // who comes after a broken lane reads them
		return
	}
	if reason := l.unfit(topicID, p.Records); reason != "" {
		l.broken = fmt.Errorf("kafka: topic %s, partition %d: %s", l.topic, l.partition, reason)
		ls.faults.add(l.broken)
		ls.member.demandReplacement("records cannot follow those before them", l.topicPartition)
		return
	}
	before := l.held
	l.add(p.Records, ls.config.MaxRecord)
	ls.budget.Hold(l.held - before)
	if !l.full && len(l.window) > mostWindow {
		l.full = true
		ls.reflow(l)
	}
}

func (p topicPartition) asMap() map[string][]int32 { return map[string][]int32{p.topic: {p.partition}} }

var noTopicID [16]byte

// unfit says why records cannot follow what the lane has; empty if they can.
func (l *lane) unfit(id [16]byte, records []*kgo.Record) string {
	switch {
	case l.topicID != noTopicID && id != noTopicID && id != l.topicID:
		return "the topic was deleted and created anew; its offsets begin again, and what the former one held and was not read is lost. It is read from its beginning"
	case records[0].Offset < l.next:
		return fmt.Sprintf("the log went back from offset %d to %d: the brokers lost records (an unclean election of a leader?). It is read again from the group's offset", l.next, records[0].Offset)
	}
	return ""
}

// pauseOverBudget stops reading a lane until there is room for its next batch.
// Called with lanes.mu held.
func (ls *lanes) pauseOverBudget(l *lane) {
	if l != nil && !l.gone && !l.overBudget {
		l.overBudget = true
		ls.reflow(l)
	}
}

// resumeInBudget goes on with lanes for whose batches there was no room: with all
// when much of the budget is free, and with one when nothing else is there to be
// delivered. Called with lanes.mu held.
func (ls *lanes) resumeInBudget(nothing bool) {
	all, one := ls.budget.Fits()
	one = one && nothing
	for _, l := range ls.order {
		if l.overBudget && (all || one) {
			l.overBudget, one = false, false
			ls.reflow(l)
		}
	}
}
