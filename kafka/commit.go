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

// commits tell the group how far lanes are done. Everyone who waits for a commit
// shares the next one. One commit is under way at a time, and none is cancelled:
// two of them on two connections could reach the broker in the wrong order.
//
// What is settled within the interval after a commit shares the next one, which
// nobody waits for: a trickle of messages would else be as many commits. So the
// group learns of it later; after a crash it comes again. While commits fail,
// each settlement waits for one, so that whoever settles hears of it.
type commits struct {
	config  *Config
	brokers *brokers
	lanes   *lanes
	intake  *intake
	member  *member
	faults  *faultList
	// positions are written before anything is committed.
	positions *positions
	// startWords are what goes with the offsets of a topic.
	startWords func(topic string) []string
	wake       chan struct{}
	interval   time.Duration

	mu      sync.Mutex // guards the rest; under it no other lock is taken
	next    *round
	began   time.Time // of the last round
	failing time.Time // since when rounds fail; zero if the last one did not
	told    time.Time // when that was told last
}

// round is a commit of everything that is dirty when it begins.
type round struct {
	done chan struct{}
	err  error
}

func newRound() *round { return &round{done: make(chan struct{})} }

// due reports whether a settlement is to be committed at once.
func (c *commits) due(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.failing.IsZero() || now.Sub(c.began) >= c.interval
}

// ended notes how a round ended. It reports whether it is time to say that
// rounds fail, where nobody may be waiting for one.
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

// ask asks for a round, which begins after the call.
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

// run commits until life ends: when it is asked to, and with each interval what
// nobody waits for.
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

// commit tells the group how far its lanes are done, after the store.
func (c *commits) commit(ctx context.Context) error {
	all := c.toCommit(c.renewed(), c.brokers.unanswered.Within(lateness, time.Now()))
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
		waits := c.awaitsGeneration()
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

// A commit that is not answered in time is sent again on another connection.
// The broker may still carry out the first one after later ones: then the group's
// offset goes back, and no client is told. No client can prevent that, and the markers
// absorb the records that come again. So that the offset does not stay there on a
// partition where nothing more happens, lanes are committed again for a while.

const (
	// lateness is how long an unanswered commit is expected to be carried out.
	lateness = 2 * time.Minute
	// againEvery is how often lanes are committed again until then.
	againEvery = 5 * time.Second
)

// uncertain reports whether a lane is to be committed again although the group
// has heard how far it is done.
func (l *lane) uncertain(now time.Time) bool {
	return !l.gone && l.done.offset >= 0 && l.done.offset == l.committed.offset && now.Sub(l.committedAt) >= againEvery
}

// pending is a lane and the position to commit for it.
type pending struct {
	lane  *lane
	at    position
	owner owner
	topic [16]byte
	// kept is what the store must have of the lane; -1 if nothing is known.
	kept int64
}

// toCommit are the lanes of which the group does not know how far they are done,
// by who owns them. With late an older commit may still be carried out, see
// lateness; renewed is who the member is now, where no callback tells.
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

// renewEpoch: with the protocol of KIP-848 a member's epoch rises with a
// heartbeat, and no callback tells. What is not gone here was not given up
// there: the callbacks that give lanes up return before the brokers hear of it.
func (l *lane) renewEpoch(now owner) {
	if !l.gone && l.refused == l.owner && l.owner.member == now.member {
		l.owner = now
	}
}

// note notes the answer for one lane. It says why the lane is lost, if it is; an error says
// that the offset is not committed and may be later. Called with lanes.mu held.
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
		// A newer generation exists and this member is in it: its callback
		// decides whether the lane is still ours. Until then nothing is tried.
		if of.lane.refused != of.owner {
			of.lane.refused, of.lane.refusedAt = of.owner, time.Now()
		}
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition):
		c.faults.topicDeleted(of.lane.topic, fmt.Errorf("kafka: topic %s: it was deleted, or deleted and created anew; what was applied of it stays applied: %w", of.lane.topic, err))
		return "its topic was deleted", nil
	}
	return "", fmt.Errorf("kafka: the offset of lane %s is not committed yet: %w", of.lane.id.ID, explain(err, of.lane.topic, c.config.Group))
}

// awaitsGeneration is an error while the group takes no offsets of a lane,
// because it is shared out anew.
func (c *commits) awaitsGeneration() error {
	for l := range c.lanes.each {
		if !l.gone && l.refused == l.owner && l.dirty() {
			return fmt.Errorf("kafka: the offset of lane %s is not committed: group %s is shared out anew", l.id.ID, c.config.Group)
		}
	}
	return nil
}
