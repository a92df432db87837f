package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// commit tells the group how far its lanes are done, after the store.
func (c *commits) commit(ctx context.Context) error {
	all := c.offsets.toCommit(c.renewed(), c.brokers.unanswered.Within(lateness, time.Now()))
	if err := c.positions.keep(ctx, all); err != nil {
		return err
	}
	var errs error
	for who, which := range all {
		response, err := c.request(who, which).RequestWith(ctx, c.brokers.client())
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("kafka: the offsets of group %s could not be committed and will be: %w", c.config.Group, err))
			continue
		}
		errs = errors.Join(errs, c.answered(which, response))
	}
	return errs
}

// renewed is who the member is now, where no callback tells.
func (c *commits) renewed() *owner {
	client := c.member.current()
	if client == nil || !c.config.NextGen {
		return nil
	}
	now := ownerOf(client)
	return &now
}

func (c *commits) request(who owner, which map[topicPartition]pending) *kmsg.OffsetCommitRequest {
	request := kmsg.NewPtrOffsetCommitRequest()
	request.Group = c.config.Group
	request.MemberID, request.Generation = who.member, who.generation
	if c.config.Instance != "" {
		request.InstanceID = kmsg.StringPtr(c.config.Instance)
	}
	topics := map[string]int{}
	for p, commit := range which {
		topic := entryOf(topics, p.topic, &request.Topics, kmsg.NewOffsetCommitRequestTopic)
		topic.Topic, topic.TopicID = p.topic, commit.topic
		partition := kmsg.NewOffsetCommitRequestTopicPartition()
		partition.Partition, partition.Offset, partition.LeaderEpoch = p.partition, commit.at.offset, commit.at.epoch
		partition.Metadata = c.metadata(p.topic, commit.topic)
		topic.Partitions = append(topic.Partitions, partition)
	}
	return request
}

// answered notes what the group answered.
func (c *commits) answered(which map[topicPartition]pending, response *kmsg.OffsetCommitResponse) error {
	var errs error
	for i := range response.Topics {
		topic := &response.Topics[i]
		for _, p := range topic.Partitions {
			commit, found := which[partitionOf(topic, p.Partition, which)]
			if !found {
				continue
			}
			lost, err := c.offsets.answered(commit, kerr.ErrorForCode(p.ErrorCode))
			if lost != "" {
				c.lanes.lose([]*lane{commit.lane}, lost)
			}
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

// partitionOf finds a partition of a response, which may name its topic by id.
func partitionOf(topic *kmsg.OffsetCommitResponseTopic, partition int32, which map[topicPartition]pending) topicPartition {
	if topic.Topic != "" {
		return topicPartition{topic.Topic, partition}
	}
	for p, commit := range which {
		if p.partition == partition && commit.topic == topic.TopicID {
			return p
		}
	}
	return topicPartition{}
}

// starts commits where lanes begin, as their owner, after the store.
func (c *commits) starts(ctx context.Context, found map[topicPartition]int64) error {
	all := c.offsets.toBegin(found)
	if err := c.positions.keep(ctx, all); err != nil {
		return err
	}
	for who, which := range all {
		response, err := c.request(who, which).RequestWith(ctx, c.brokers.client())
		if err != nil {
			return err
		}
		for _, topic := range response.Topics {
			for _, p := range topic.Partitions {
				err = errors.Join(err, kerr.ErrorForCode(p.ErrorCode))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// againAfter is how soon offsets are tried again that the group refused while it
// is shared out anew.
const againAfter = 50 * time.Millisecond

// last commits what is settled before the source ends. Of a generation that has
// just ended the group takes nothing: the callback of the next one says whose
// the lanes are, and is waited for, but for no longer than a last commit may
// take, and half of the time there is: the other half is for leaving the group.
func (c *commits) last(ctx context.Context) error {
	limit := lastCommit
	if end, ends := ctx.Deadline(); ends {
		limit = min(limit, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := c.wait(ctx)
		waits := c.offsets.awaitsGeneration()
		if waits == nil && !staleGeneration(err) { // where the next one has begun meanwhile, it is asked
			return err
		}
		select {
		case <-time.After(againAfter):
		case <-ctx.Done():
			return cmp.Or(err, waits)
		}
	}
}

// staleGeneration reports whether the group refused a commit because its
// generation had ended.
func staleGeneration(err error) bool {
	return errors.Is(err, kerr.IllegalGeneration) || errors.Is(err, kerr.StaleMemberEpoch)
}

// metadata are those of an offset of a topic.
func (c *commits) metadata(topic string, id [16]byte) *string {
	words := c.startWords(topic)
	if c.positions.store != nil {
		words = append(words, stored.KeptWord(id))
	}
	if len(words) == 0 {
		return nil
	}
	return kmsg.StringPtr(strings.Join(words, " "))
}
