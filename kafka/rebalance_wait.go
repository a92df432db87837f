package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A topic that matches a pattern and was added just now is read by nobody until
// the group has been shared out anew, which takes as long as the slowest of its
// members needs to give lanes up. Until then a source without anything to read is
// not idle; the group is asked who reads the topic.

// shares are the partitions that the group has given its members, by member.
type shares map[string]kadm.TopicsSet

// topicsShared reports whether the group has said who reads the topics that were
// added.
func (s *Source) topicsShared(ctx context.Context) (bool, error) {
	if s.topics.pattern == nil {
		return true, nil
	}
	client := s.member.current()
	if client == nil {
		return false, nil
	}
	if err := s.beginnings.look(ctx); err != nil {
		return false, err
	}
	added, unsure := s.topics.unshared()
	if len(added) == 0 {
		return !unsure, nil
	}
	given, err := s.brokers.shares(ctx, s.topics.allIDs())
	if err != nil {
		return false, fmt.Errorf("kafka: group %s: who reads the topics that were added is not known: %w", s.config.Group, err)
	}
	own := ownerOf(client).member
	for topic, partitions := range added {
		if !s.shared(given, own, topic, partitions) {
			return false, nil
		}
		s.topics.shared(topic)
	}
	return !unsure, nil
}

// shared reports whether each partition of a topic is somebody's, and this
// member has been told of its own.
func (s *Source) shared(given shares, own, topic string, partitions int) bool {
	read := kadm.TopicsSet{}
	for member, has := range given {
		for partition := range has[topic] {
			if member == own && !s.lanes.has(topicPartition{topic, partition}) {
				return false
			}
			read.Add(topic, partition)
		}
	}
	return len(read[topic]) >= partitions
}

// shares asks the group what it has given its members. ids are of the topics in
// question: brokers that balance name a topic by its id.
func (b *brokers) shares(ctx context.Context, ids map[string][16]byte) (shares, error) {
	if b.config.NextGen {
		return b.sharesByBrokers(ctx, ids)
	}
	group := b.config.Group
	groups, err := kadm.NewClient(b.client()).DescribeGroups(ctx, group)
	if err != nil {
		return nil, err
	}
	all := shares{}
	for _, m := range groups[group].Members {
		has := kadm.TopicsSet{}
		if assigned, ok := m.Assigned.AsConsumer(); ok {
			for _, topic := range assigned.Topics {
				has.Add(topic.Topic, topic.Partitions...)
			}
		}
		all[m.MemberID] = has
	}
	return all, groups[group].Err
}

// sharesByBrokers is shares where the brokers balance (KIP-848).
func (b *brokers) sharesByBrokers(ctx context.Context, ids map[string][16]byte) (shares, error) {
	request := kmsg.NewPtrConsumerGroupDescribeRequest()
	request.Groups = []string{b.config.Group}
	response, err := request.RequestWith(ctx, b.client())
	if err != nil {
		return nil, err
	}
	all := shares{}
	for _, group := range response.Groups {
		if err := kerr.ErrorForCode(group.ErrorCode); err != nil {
			return nil, err
		}
		for _, m := range group.Members {
			has := kadm.TopicsSet{}
			for _, given := range m.Assignment.TopicPartitions {
				for topic, id := range ids {
					if id == given.TopicID {
						has.Add(topic, given.Partitions...)
					}
				}
			}
			all[m.MemberID] = has
		}
	}
	return all, nil
}
