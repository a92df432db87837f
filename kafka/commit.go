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

// commits commits the offsets of lanes to the group. All callers that wait for a commit share the next commit. Only one
// commit is in progress at a time, and no commit is cancelled, because two commits on two connections could reach the
// broker in the wrong order.
//
// If acks follow a commit within the commit interval, the next commit contains all these acks, and no caller waits for
// this commit. Without this rule, a source with few messages would send a commit for each message. The price is that
// the group learns of acks later, and that after a crash the acked records are delivered again. While commits fail,
// each call of Settle waits for a commit and returns its error.
type commits struct {
	config  *Config
	brokers *brokers
	lanes   *lanes
	intake  *intake
	member  *member
	faults  *faultList
	// The field positions writes positions to the store before the offsets are committed.
	positions *positions
	// startMetadata returns the metadata that is committed with the offsets of a topic.
	startMetadata func(topic string) []string
	wake          chan struct{}
	interval      time.Duration

	mu           sync.Mutex // guards the fields below; no other lock is taken while it is held
	next         *round
	began        time.Time // start of the last round
	failing      time.Time // time of the first failed round; zero if the last round succeeded
	lastReported time.Time // time of the last report of a failure
}

// round is one commit of all lanes that have unconfirmed offsets when the round starts.
type round struct {
	done chan struct{}
	err  error
}

func newRound() *round { return &round{done: make(chan struct{})} }

// isDue reports whether an ack must be committed at once.
func (c *commits) isDue(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.failing.IsZero() || now.Sub(c.began) >= c.interval
}

// finishRound stores the result of a round. The result tell is true if the source must report a failure now, because
// possibly no caller of Settle waits for a round and gets its error.
func (c *commits) finishRound(err error, now time.Time) (tell bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.failing = time.Time{}
		return false
	case c.failing.IsZero():
		c.failing, c.lastReported = now, now
	}
	if tell = now.Sub(c.lastReported) >= complainEvery; tell {
		c.lastReported = now
	}
	return tell
}

// ask requests a round, which begins after the call of ask.
func (c *commits) ask() *round {
	c.mu.Lock()
	r := c.next
	c.mu.Unlock()
	c.wakeUp()
	return r
}

// wait waits for a round that begins after the call of wait.
func (c *commits) wait(ctx context.Context) error { return c.ask().wait(ctx) }

func (r *round) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("kafka: the group's offsets are not committed yet: %w", ctx.Err())
	}
}

func (c *commits) wakeUp() {
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

// run runs the rounds until the context life ends. A round begins when a caller requests it, and once per interval for
// acks that no caller waits for.
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
		if c.finishRound(r.err, time.Now()) {
			c.faults.complain(r.err)
		}
	}
}

// commit writes the positions of lanes to the store and then commits their offsets to the group.
func (c *commits) commit(ctx context.Context) error {
	all := c.offsetsToCommit(c.currentOwner(), c.brokers.unanswered.Within(lateness, time.Now()))
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
		errs = errors.Join(errs, c.handleResponse(which, response))
	}
	return errs
}

// currentOwner returns the member's current identity. With NextGen, the member's epoch changes without a
// callback.
func (c *commits) currentOwner() *owner {
	client := c.member.currentClient()
	if client == nil || !c.config.NextGen {
		return nil
	}
	now := ownerOf(client)
	return &now
}

func (c *commits) request(who owner, which map[topicPartition]pendingCommit) *kmsg.OffsetCommitRequest {
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
		partition.Partition, partition.Offset, partition.LeaderEpoch = p.partition, commit.position.offset, commit.position.epoch
		partition.Metadata = c.metadata(p.topic, commit.topic)
		topic.Partitions = append(topic.Partitions, partition)
	}
	return request
}

// handleResponse processes the group's response to a commit.
func (c *commits) handleResponse(which map[topicPartition]pendingCommit, response *kmsg.OffsetCommitResponse) error {
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
			c.lanes.withAll(func([]*lane) { lost, err = c.note(commit, kerr.ErrorForCode(p.ErrorCode)) })
			if lost != "" {
				c.lanes.lose([]*lane{commit.lane}, lost)
			}
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

// partitionOf finds a partition in a response. The response may contain the topic's id instead of the topic's name.
func partitionOf(topic *kmsg.OffsetCommitResponseTopic, partition int32, which map[topicPartition]pendingCommit) topicPartition {
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

// againAfter is the delay before the next attempt to commit an offset that the group refused during a
// rebalance.
const againAfter = 50 * time.Millisecond

// commitLast commits all acks before the source ends. The group refuses commits of a generation that has just ended. If
// the group refuses a commit, commitLast waits for the callback that renews the lanes' owners, but at most for
// lastCommit and for half of the remaining time. Half of the remaining time is reserved for leaving the group.
func (c *commits) commitLast(ctx context.Context) error {
	limit := lastCommit
	if end, ends := ctx.Deadline(); ends {
		limit = min(limit, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := c.wait(ctx)
		waits := c.awaitsGeneration()
		if waits == nil && !staleGeneration(err) { // the next generation may have begun after the commit
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

// metadata returns the metadata to commit with the offsets of a topic.
func (c *commits) metadata(topic string, id [16]byte) *string {
	words := c.startMetadata(topic)
	if c.positions.store != nil {
		words = append(words, stored.KeptWord(id))
	}
	if len(words) == 0 {
		return nil
	}
	return kmsg.StringPtr(strings.Join(words, " "))
}

// A commit that is not answered in time is sent again on another connection. The broker may carry out the first commit
// after later commits, so that the group's offset goes back. No client learns that the offset has gone back, and no
// client can prevent it. The markers in the store absorb the redelivered records. For some time after an unanswered
// commit, the offsets of all lanes are committed repeatedly, so that a partition without new records does not keep the
// old offset.

const (
	// The time for which a broker may still carry out an unanswered commit.
	lateness = 2 * time.Minute
	// The interval of repeated commits during the time lateness after an unanswered commit.
	againEvery = 5 * time.Second
)

// mustRecommit reports whether the lane's offset must be committed again although the group has confirmed that
// offset.
func (l *lane) mustRecommit(now time.Time) bool {
	return !l.ended && l.acked.offset >= 0 && l.acked.offset == l.committed.offset && now.Sub(l.committedAt) >= againEvery
}

// pendingCommit is a lane and the position to commit for it.
type pendingCommit struct {
	lane     *lane
	position position
	owner    owner
	topic    [16]byte
	// The position that the store must contain for the lane; -1 if this position is unknown.
	storedOffset int64
}

// offsetsToCommit returns the lanes with unconfirmed offsets, by owner. The parameter late is true if the broker may
// still carry out an older commit (see lateness). The parameter renewed is the member's current identity, as returned
// by currentOwner.
func (c *commits) offsetsToCommit(renewed *owner, late bool) map[owner]map[topicPartition]pendingCommit {
	now := time.Now()
	all := map[owner]map[topicPartition]pendingCommit{}
	for l := range c.lanes.each {
		if renewed != nil {
			l.renewEpoch(*renewed)
		}
		if !l.needsCommit() && !(late && l.mustRecommit(now)) || l.refused == l.owner {
			continue
		}
		if all[l.owner] == nil {
			all[l.owner] = map[topicPartition]pendingCommit{}
		}
		l.oldestUnconfirmed, l.oldestUncommitted = minTime(l.oldestUnconfirmed, l.oldestUncommitted), time.Time{}
		all[l.owner][l.topicPartition] = pendingCommit{l, l.acked, l.owner, l.topicID, l.storedOffset}
	}
	return all
}

// renewEpoch updates the epoch of the lane's owner. With KIP-848 a heartbeat raises the epoch of a member, without a
// callback. A lane that is not marked as gone still belongs to this member, because the callbacks that give up lanes
// return before the brokers learn of the change.
func (l *lane) renewEpoch(now owner) {
	if !l.ended && l.refused == l.owner && l.owner.member == now.member {
		l.owner = now
	}
}

// note stores the group's answer for one lane. If the lane is lost, note returns the reason as a text. If the offset is
// not committed now but may be committed later, note returns an error. The caller holds lanes.mu.
func (c *commits) note(of pendingCommit, err error) (lost string, why error) {
	switch {
	case err == nil:
		of.lane.committed, of.lane.committedAt = of.position, time.Now()
		of.lane.oldestUnconfirmed = time.Time{}
		return "", nil
	case of.lane.ended:
		return "", nil
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.FencedInstanceID):
		return "the group does not know this member any more", nil
	case staleGeneration(err):
		// A newer generation exists, and this member belongs to the newer generation. The callback of the newer
		// generation decides whether this process keeps the lane. The offset is not committed again before the
		// callback.
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
		if !l.ended && l.refused == l.owner && l.needsCommit() {
			return fmt.Errorf("kafka: the offset of lane %s is not committed: group %s is rebalancing", l.id.ID, c.config.Group)
		}
	}
	return nil
}
