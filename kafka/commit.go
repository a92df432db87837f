package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// commits commits the offsets of lanes to the group. All callers that wait for a commit share the next one. Only one
// commit is in progress at a time, and none is cancelled, because two commits on two connections could reach the broker
// in the wrong order.
//
// Settlements within the commit interval are committed together by the next commit, and no caller waits for it;
// otherwise each of a few messages would cause a commit. So the group learns of them later, and after a crash they are
// delivered again. While commits fail, each settlement waits for one, so that the caller of Settle gets the error.
type commits struct {
	config  *Config
	brokers *brokers
	lanes   *lanes
	intake  *intake
	member  *member
	faults  *faultList
	// positions are written to the store before offsets are committed.
	positions *positions
	// startWords returns the metadata that is committed with the offsets of a topic.
	startWords func(topic string) []string
	wake       chan struct{}
	interval   time.Duration

	mu      sync.Mutex // guards the fields below; no other lock is taken while it is held
	next    *round
	began   time.Time // when the last round began
	failing time.Time // when rounds began to fail; zero if the last one succeeded
	told    time.Time // when the failure was last reported
}

// round is a commit of all lanes that are dirty when it begins.
type round struct {
	done chan struct{}
	err  error
}

func newRound() *round { return &round{done: make(chan struct{})} }

// due reports whether a settlement must be committed at once.
func (c *commits) due(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.failing.IsZero() || now.Sub(c.began) >= c.interval
}

// ended stores how a round ended. ended reports whether a failure must be reported now, because perhaps no caller waits
// for a round.
func (c *commits) ended(err error, now time.Time) (tell bool) {
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

// ask requests a round that begins after the call.
func (c *commits) ask() *round {
	c.mu.Lock()
	r := c.next
	c.mu.Unlock()
	c.rouse()
	return r
}

// wait waits for a round that begins after the call.
func (c *commits) wait(ctx context.Context) error { return c.ask().wait(ctx) }

func (r *round) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("kafka: the group's offsets are not committed yet: %w", ctx.Err())
	}
}

func (c *commits) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *commits) begin() *round {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.next
	c.next = newRound()
	c.began = time.Now()
	return r
}

// run commits until life ends: on request, and once per interval for settlements that no caller waits for.
func (c *commits) run(life context.Context) {
	ticker := time.NewTicker(c.config.CommitInterval)
	defer ticker.Stop()
	for {
		select {
		case <-c.wake:
			ticker.Reset(c.config.CommitInterval)
		case <-ticker.C:
		case <-life.Done():
			r := c.begin()
			r.err = fmt.Errorf("kafka: the source is closed: %w", semel.ErrClosed)
			close(r.done)
			return
		}
		r := c.begin()
		r.err = c.commit(life)
		close(r.done)
		if c.ended(r.err, time.Now()) {
			c.faults.complain(r.err)
		}
	}
}

// commit writes the positions of lanes to the store and then commits their offsets to the group.
func (c *commits) commit(ctx context.Context) error {
	all := c.toCommit(c.renewed(), c.brokers.unanswered.Within(lateness, time.Now()))
	if err := c.positions.keep(ctx, all); err != nil {
		return err
	}
	var errs error
	for who, which := range all {
		response, err := c.request(who, which).RequestWith(ctx, c.brokers.client())
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("kafka: the offsets of group %s could not be committed yet; the commit is retried: %w", c.config.Group, err))
			continue
		}
		errs = errors.Join(errs, c.answered(which, response))
	}
	return errs
}

// renewed returns the member's current owner, for changes without a callback.
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

// answered stores the group's answers.
func (c *commits) answered(which map[topicPartition]pending, response *kmsg.OffsetCommitResponse) error {
	var errs error
	for i := range response.Topics {
		topic := &response.Topics[i]
		for _, p := range topic.Partitions {
			commit, found := which[partitionOf(topic, p.Partition, which)]
			if !found {
				continue
			}
			var lost string
			var err error
			c.lanes.with(func([]*lane) { lost, err = c.note(commit, kerr.ErrorForCode(p.ErrorCode)) })
			if lost != "" {
				c.lanes.lose([]*lane{commit.lane}, lost)
			}
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

// partitionOf finds a partition in a response, which may name its topic by id.
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

// againAfter is the delay before offsets are committed again that the group refused during a rebalance.
const againAfter = 50 * time.Millisecond

// last commits all settlements before the source ends. The group refuses commits of a generation that has just ended;
// then last waits for the callback that renews the lanes' owners, but at most lastCommit and half of the remaining time.
// The other half is for leaving the group.
func (c *commits) last(ctx context.Context) error {
	limit := lastCommit
	if end, ends := ctx.Deadline(); ends {
		limit = min(limit, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := c.wait(ctx)
		waits := c.awaitsGeneration()
		if waits == nil && !staleGeneration(err) { // the next generation may have begun in the meantime
			return err
		}
		select {
		case <-time.After(againAfter):
		case <-ctx.Done():
			return cmp.Or(err, waits)
		}
	}
}

// staleGeneration reports whether the group refused a commit because its generation had ended.
func staleGeneration(err error) bool {
	return errors.Is(err, kerr.IllegalGeneration) || errors.Is(err, kerr.StaleMemberEpoch)
}

// metadata returns the metadata of a topic's offsets.
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

// A commit that is not answered in time is sent again on another connection. The broker may carry out the first commit
// after later ones: then the group's offset goes back, and no client learns of it. No client can prevent that. The
// markers absorb the redelivered records. Lanes are committed again for some time, so that a quiet partition does not
// keep the old offset.

const (
	// lateness is how long a broker may still carry out an unanswered commit.
	lateness = 2 * time.Minute
	// againEvery is the interval of repeated commits during that time.
	againEvery = 5 * time.Second
)

// uncertain reports whether a lane must be committed again although the group has confirmed its offset.
func (l *lane) uncertain(now time.Time) bool {
	return !l.gone && l.done.offset >= 0 && l.done.offset == l.committed.offset && now.Sub(l.committedAt) >= againEvery
}

// pending is a lane and the position to commit for it.
type pending struct {
	lane  *lane
	at    position
	owner owner
	topic [16]byte
	// kept is the position that the store must have for the lane; -1 if unknown.
	kept int64
}

// toCommit returns the lanes with unconfirmed offsets, by owner. late is true if an older commit may still be carried
// out (see lateness). renewed is the member's current owner, for changes without a callback.
func (c *commits) toCommit(renewed *owner, late bool) map[owner]map[topicPartition]pending {
	now := time.Now()
	all := map[owner]map[topicPartition]pending{}
	for l := range c.lanes.each {
		if renewed != nil {
			l.renewEpoch(*renewed)
		}
		if !l.dirty() && !(late && l.uncertain(now)) || l.refused == l.owner {
			continue
		}
		if all[l.owner] == nil {
			all[l.owner] = map[topicPartition]pending{}
		}
		l.committing, l.uncommitted = earlier(l.committing, l.uncommitted), time.Time{}
		all[l.owner][l.topicPartition] = pending{l, l.done, l.owner, l.topicID, l.kept}
	}
	return all
}

// renewEpoch updates the epoch of the lane's owner. With KIP-848 a member's epoch rises with a heartbeat and without a
// callback. A lane that is not gone was not given up in between, because the callbacks that give lanes up return before
// the brokers learn of it.
func (l *lane) renewEpoch(now owner) {
	if !l.gone && l.refused == l.owner && l.owner.member == now.member {
		l.owner = now
	}
}

// note stores the answer for one lane. lost is why the lane is lost, or empty. why is set if the offset is not committed
// but may be later. The caller holds lanes.mu.
func (c *commits) note(of pending, err error) (lost string, why error) {
	switch {
	case err == nil:
		of.lane.committed, of.lane.committedAt = of.at, time.Now()
		of.lane.committing = time.Time{}
		return "", nil
	case of.lane.gone:
		return "", nil
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.FencedInstanceID):
		return "the group does not know this member any more", nil
	case staleGeneration(err):
		// A newer generation exists and this member is in it: its callback decides whether this process keeps the lane.
		// No commit is tried before that.
		if of.lane.refused != of.owner {
			of.lane.refused, of.lane.refusedAt = of.owner, time.Now()
		}
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition):
		c.faults.topicDeleted(of.lane.topic, fmt.Errorf("kafka: topic %s: it was deleted, or deleted and created again; the effects of its records stay applied: %w", of.lane.topic, err))
		return "its topic was deleted", nil
	}
	return "", fmt.Errorf("kafka: the offset of lane %s is not committed yet: %w", of.lane.id.ID, explain(err, of.lane.topic, c.config.Group))
}

// awaitsGeneration returns an error if the group refuses offsets of a lane during a rebalance.
func (c *commits) awaitsGeneration() error {
	for l := range c.lanes.each {
		if !l.gone && l.refused == l.owner && l.dirty() {
			return fmt.Errorf("kafka: the offset of lane %s is not committed: group %s is rebalancing", l.id.ID, c.config.Group)
		}
	}
	return nil
}
