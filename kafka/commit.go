package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// committer lets everyone who waits for a commit share the next one. One
// commit is under way at a time, and none is cancelled: two of them on two
// connections could reach the broker in the wrong order.
//
// What is settled within the interval after a commit shares the next one, which
// nobody waits for: a trickle of messages would else be as many commits. So the
// group learns of it later; after a crash it comes again. While commits fail,
// each settlement waits for one, so that whoever settles hears of it.
type committer struct {
	wake     chan struct{}
	interval time.Duration
	mu       sync.Mutex // guards the rest
	next     *round
	began    time.Time // of the last round
	failing  time.Time // since when rounds fail; zero if the last one did not
	told     time.Time // when that was told last
}

// round is a commit of everything that is dirty when it begins.
type round struct {
	done chan struct{}
	err  error
}

func newCommitter(interval time.Duration) committer {
	return committer{wake: make(chan struct{}, 1), interval: interval, next: &round{done: make(chan struct{})}}
}

// due reports whether a settlement is to be committed at once.
func (c *committer) due(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.failing.IsZero() || now.Sub(c.began) >= c.interval
}

// ended notes how a round ended. It reports whether it is time to say that
// rounds fail, where nobody may be waiting for one.
func (c *committer) ended(err error, now time.Time) (tell bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.failing = time.Time{}
		return false
	case c.failing.IsZero():
		c.failing, c.told = now, now
	}
	if tell = now.Sub(c.told) >= complainEvery; tell {
		c.told = now
	}
	return tell
}

// ask asks for a round, which begins after the call.
func (c *committer) ask() *round {
	c.mu.Lock()
	r := c.next
	c.mu.Unlock()
	c.rouse()
	return r
}

// wait waits for a round that begins after the call.
func (c *committer) wait(ctx context.Context) error { return c.ask().wait(ctx) }

func (r *round) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("kafka: the group's offsets are not committed yet: %w", ctx.Err())
	}
}

func (c *committer) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *committer) begin() *round {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.next
	c.next = &round{done: make(chan struct{})}
	c.began = time.Now()
	return r
}

// commitLoop commits until the source is closed: when it is asked to, and with
// each interval what nobody waits for.
func (s *Source) commitLoop() {
	ticker := time.NewTicker(s.config.CommitInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.commits.wake:
			ticker.Reset(s.config.CommitInterval)
		case <-ticker.C:
		case <-s.life.Done():
			r := s.commits.begin()
			r.err = fmt.Errorf("kafka: the source is closed: %w", semel.ErrClosed)
			close(r.done)
			return
		}
		r := s.commits.begin()
		r.err = s.commit()
		close(r.done)
		if s.commits.ended(r.err, time.Now()) {
			s.complain(r.err)
		}
	}
}

// complain lets Fetch say what has failed for long.
func (s *Source) complain(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.add(err)
	s.gate.rouse()
}

// commit tells the group how far its lanes are done.
func (s *Source) commit() error {
	var errs error
	for who, lanes := range s.toCommit() {
		request := s.commitRequest(who, lanes)
		response, err := request.RequestWith(s.life, s.side)
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("kafka: the offsets of group %s could not be committed and will be: %w", s.config.Group, err))
			continue
		}
		errs = errors.Join(errs, s.committed(lanes, response))
	}
	return errs
}

// pending is a lane and the position to commit for it.
type pending struct {
	lane  *lane
	at    position
	stamp stamp
	topic [16]byte
}

func (s *Source) toCommit() map[stamp]map[place]pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.NextGen && s.member != nil {
		s.renewEpochs()
	}
	now := time.Now()
	late := s.unanswered.lately(now)
	all := map[stamp]map[place]pending{}
	for _, l := range s.order {
		if !l.dirty() && !(late && l.uncertain(now)) || l.refused == l.stamp {
			continue
		}
		if all[l.stamp] == nil {
			all[l.stamp] = map[place]pending{}
		}
		all[l.stamp][l.place] = pending{l, l.done, l.stamp, l.topicID}
	}
	return all
}

// renewEpochs: with the protocol of KIP-848 a member's epoch rises with a
// heartbeat, and no callback tells. What is not gone here was not given up
// there: the callbacks that give lanes up return before the brokers hear of it.
func (s *Source) renewEpochs() {
	now := stampOf(s.member)
	for _, l := range s.order {
		if !l.gone && l.refused == l.stamp && l.stamp.member == now.member {
			l.stamp = now
		}
	}
}

func (s *Source) commitRequest(who stamp, lanes map[place]pending) *kmsg.OffsetCommitRequest {
	request := kmsg.NewPtrOffsetCommitRequest()
	request.Group = s.config.Group
	request.MemberID, request.Generation = who.member, who.generation
	if s.config.Instance != "" {
		request.InstanceID = kmsg.StringPtr(s.config.Instance)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	topics := map[string]int{}
	for p, c := range lanes {
		topic := under(topics, p.topic, &request.Topics, kmsg.NewOffsetCommitRequestTopic)
		topic.Topic, topic.TopicID = p.topic, c.topic
		partition := kmsg.NewOffsetCommitRequestTopicPartition()
		partition.Partition, partition.Offset, partition.LeaderEpoch = p.partition, c.at.offset, c.at.epoch
		partition.Metadata = s.metadata(p.topic)
		topic.Partitions = append(topic.Partitions, partition)
	}
	return request
}

// committed notes what the group answered.
func (s *Source) committed(lanes map[place]pending, response *kmsg.OffsetCommitResponse) error {
	var errs error
	for i := range response.Topics {
		topic := &response.Topics[i]
		for _, p := range topic.Partitions {
			c, found := lanes[s.placeOf(topic, p.Partition, lanes)]
			if !found {
				continue
			}
			lost, err := s.answered(c, kerr.ErrorForCode(p.ErrorCode))
			if lost != "" {
				s.lose([]*lane{c.lane}, lost)
			}
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

// placeOf finds a partition of a response, which may name its topic by id.
func (s *Source) placeOf(topic *kmsg.OffsetCommitResponseTopic, partition int32, lanes map[place]pending) place {
	if topic.Topic != "" {
		return place{topic.Topic, partition}
	}
	for p, c := range lanes {
		if p.partition == partition && c.topic == topic.TopicID {
			return p
		}
	}
	return place{}
}

// answered notes the answer for one lane. It says why the lane is lost, if it
// is; an error says that the offset is not committed and may be later.
func (s *Source) answered(c pending, err error) (lost string, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		c.lane.committed, c.lane.committedAt = c.at, time.Now()
		return "", nil
	case c.lane.gone:
		return "", nil
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.FencedInstanceID):
		return "the group does not know this member any more", nil
	case errors.Is(err, kerr.IllegalGeneration), errors.Is(err, kerr.StaleMemberEpoch):
		// A newer generation exists and this member is in it: its callback
		// decides whether the lane is still ours. Until then nothing is tried.
		if c.lane.refused != c.stamp {
			c.lane.refused, c.lane.refusedAt = c.stamp, time.Now()
		}
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition):
		s.letGo(c.lane.topic, fmt.Errorf("kafka: topic %s: it was deleted, or deleted and created anew; what was applied of it stays applied: %w", c.lane.topic, err))
		return "its topic was deleted", nil
	}
	return "", fmt.Errorf("kafka: the offset of lane %s is not committed yet: %w", c.lane.id.ID, explain(err, c.lane.topic, s.config.Group))
}
