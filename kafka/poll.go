package kafka

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

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
