package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// beginnings finds and stores the offsets at which the group begins topics.
type beginnings struct {
	config  *Config
	brokers *brokers
	member  *member
	topics  *topics
	intake  *intake
	store   stored.Store

	// mu guards the fields below. mu is not held during blocking calls, and no other lock is taken while it is held.
	mu sync.Mutex
	// The map known contains the stored beginning of each topic. The map undecided contains the error for each topic
	// whose beginning could not be found.
	known     map[string]stored.Beginning
	undecided map[string]error
	// The time of the next attempt.
	next time.Time
	// The topics that existed when the group first joined.
	atFirst map[stored.TopicKey]bool
}

// look looks for topics that match the pattern, and adds new topics to the member. If the store does not
// answer, the new topics wait for the next call.
func (b *beginnings) look(ctx context.Context) error {
	client, added, err := b.topics.look(ctx)
	if err != nil || len(added) == 0 {
		return err
	}
	var down errStore
	if err := b.decideTopics(ctx, slices.Sorted(maps.Keys(added))); errors.As(err, &down) {
		return err
	}
	b.topics.add(client, added)
	return nil
}

// forgetOthers removes topics that are no longer read. The source calls forgetOthers before a member joins.
func (b *beginnings) forgetOthers() {
	reading := b.topics.topicsRead()
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.known, func(topic string, _ stored.Beginning) bool { return !slices.Contains(reading, topic) })
	maps.DeleteFunc(b.undecided, func(topic string, _ error) bool { return !slices.Contains(reading, topic) })
}

// decide finds the offsets at which each topic begins, before the source reads the topic. If decide fails for a topic,
// those partitions of the topic that have no offset wait. decide returns an error only if the source can read no topic
// at all.
func (b *beginnings) decide(ctx context.Context) error {
	if err := b.decideFirstTopics(ctx); err != nil {
		return err
	}
	return b.decideTopics(ctx, b.topics.topicsRead())
}

func (b *beginnings) decideTopics(ctx context.Context, topics []string) error {
	var all error
	begun := 0
	for _, topic := range topics {
		own, err := b.decideTopic(ctx, topic)
		var down errStore
		if errors.As(err, &down) {
			return err
		}
		b.mu.Lock()
		if err == nil || own {
			begun++
		}
		if err == nil {
			delete(b.undecided, topic)
		} else {
			b.undecided[topic] = err
			all = errors.Join(all, err)
		}
		b.mu.Unlock()
	}
	if begun == 0 {
		return all
	}
	return nil
}

// decideTopic finds the offsets at which a topic begins. After an error, the result own is true if the group has
// offsets for the topic anyway.
func (b *beginnings) decideTopic(ctx context.Context, topic string) (own bool, err error) {
	id := b.topics.id(topic)
	b.mu.Lock()
	_, known := b.known[topic]
	b.mu.Unlock()
	if known {
		return false, nil
	}
	name := stored.Name(b.config.Group, topic)
	found, kept, err := b.store.Load(ctx, name)
	if err != nil {
		return false, errStore{fmt.Errorf("kafka: topic %s: cannot read where group %s began, so nothing is read: position %s of consumer %s in the store: %w", topic, b.config.Group, name, b.store.Consumer, err)}
	}
	if !kept {
		found = stored.Beginning{TopicID: id, Fresh: true}
		if !b.createdLater(topic, id) {
			found.Starts, own, err = b.firstStarts(ctx, topic)
		}
		if err != nil {
			return own, err
		}
		if found, err = b.store.Keep(ctx, name, found); err != nil {
			return own, errStore{fmt.Errorf("kafka: topic %s: where group %s begins could not be written to the store, so nothing is read: %w", topic, b.config.Group, err)}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[topic] = found
	return own, nil
}

// startMetadata returns the metadata word with the number of partitions of a topic to which Start applied.
func (b *beginnings) startMetadata(topic string) []string {
	id := b.topics.id(topic)
	b.mu.Lock()
	defer b.mu.Unlock()
	began, known := b.known[topic]
	if !known || b.config.Start == (Start{}) {
		return nil
	}
	n := len(began.Starts)
	if began.TopicID != id {
		n = 0
	}
	return []string{stored.StartWord(n)}
}

// decideAgain calls decide again, at intervals, while the beginning of a topic is unknown. After decide succeeds, a new
// member begins at the beginning that decide has found.
func (b *beginnings) decideAgain(life context.Context, now time.Time) {
	if b.member.currentClient() == nil {
		return
	}
	waiting := b.dueTopics(now)
	if len(waiting) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(life, askTimeout)
	defer cancel()
	_ = b.decide(ctx) // the waiting lanes report the error
	for _, topic := range waiting {
		if !b.isUndecided(topic) {
			b.member.demandReplacement("where to begin is known now", allOf(topic))
		}
	}
}

// dueTopics returns the topics whose beginning is unknown, if it is time for the next attempt.
func (b *beginnings) dueTopics(now time.Time) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.undecided) == 0 || b.next.After(now) {
		return nil
	}
	b.next = now.Add(askEvery)
	return slices.Sorted(maps.Keys(b.undecided))
}

func (b *beginnings) isUndecided(topic string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.undecided[topic] != nil
}

// errStore is the error of a store that does not answer, so that the source cannot begin any topic.
type errStore struct{ err error }

func (e errStore) Error() string { return e.err.Error() }

func (e errStore) Unwrap() error { return e.err }

// decideFirstTopics reads from the store which topics existed when the group first joined with a pattern. At the first
// join, decideFirstTopics writes the existing topics to the store. decideFirstTopics runs before the source begins any
// topic.
func (b *beginnings) decideFirstTopics(ctx context.Context) error {
	b.mu.Lock()
	known := b.atFirst != nil
	b.mu.Unlock()
	if known || b.topics.pattern == nil {
		return nil
	}
	name := stored.FirstTopicsName(b.config.Group)
	atFirst, err := b.store.FirstTopics(ctx, name, b.topics.topicsAtJoin())
	if err != nil {
		return errStore{fmt.Errorf("kafka: cannot read which topics existed when group %s first joined, so nothing is read: position %s of consumer %s in the store: %w", b.config.Group, name, b.store.Consumer, err)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.atFirst = atFirst
	return nil
}

// createdLater reports whether a topic was created after the group's first join. Start does not apply to a topic that
// was created later.
func (b *beginnings) createdLater(topic string, id [16]byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.topics.pattern != nil && !b.atFirst[stored.TopicKeyOf(topic, id)]
}

var errNoStore = errors.New("kafka: Start is set, but there is no store for the start offsets: call Info().Positions with the consumer's store before Fetch, as consumer.Consumer does")

// firstStarts returns the start offsets of a topic at the first join, for the partitions to which Start applies. If the
// group has an offset for a partition, that offset is the start. The result own is true if the group has an offset for
// at least one partition of the topic.
func (b *beginnings) firstStarts(ctx context.Context, topic string) (starts []int64, own bool, err error) {
	if b.config.Start == (Start{}) {
		return nil, false, nil
	}
	if b.store.Positions == nil {
		return nil, false, errNoStore
	}
	ask := kadm.NewClient(b.brokers.client())
	offsets, err := ask.FetchOffsets(ctx, b.config.Group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, false, explain(err, topic, b.config.Group)
	}
	ends, err := allListed(ask.ListEndOffsets(ctx, topic))
	if err != nil {
		return nil, false, explain(err, topic, b.config.Group)
	}
	known := offsets[topic]
	n := len(ends[topic])
	if len(known) > 0 { // the group reads the topic already; its metadata has the number of partitions to which Start applied
		n = min(n, countMarked(known))
	}
	starts, err = b.startsOf(ctx, ask, topic, known, n)
	return starts, len(known) > 0, err
}

// countMarked returns the number of partitions to which Start applied, from the metadata of the group's
// offsets.
func countMarked(known map[int32]kadm.OffsetResponse) int {
	n := 0
	for _, o := range known {
		n = max(n, stored.MarkedStarts(o.Metadata))
	}
	return n
}

// startsOf returns the start offset of each partition of a topic: the group's own offset, or the offset that follows
// from Config.Start if the group has no offset. The offsets for Config.Start are requested only if needed.
func (b *beginnings) startsOf(ctx context.Context, ask *kadm.Client, topic string, known map[int32]kadm.OffsetResponse, n int) ([]int64, error) {
	starts := make([]int64, n)
	var begin kadm.ListedOffsets
	for i := range starts {
		p := int32(i)
		if o, found := known[p]; found && o.At >= 0 {
			starts[i] = o.At
			continue
		}
		if begin == nil {
			var err error
			if begin, err = b.startOffsets(ctx, ask, topic); err != nil {
				return nil, err
			}
		}
		if at, found := begin.Lookup(topic, p); found {
			starts[i] = max(at.Offset, 0)
		}
	}
	return starts, nil
}

// startOffsets returns the offsets for the partitions of a topic that follow from Config.Start.
func (b *beginnings) startOffsets(ctx context.Context, ask *kadm.Client, topic string) (kadm.ListedOffsets, error) {
	switch start := b.config.Start; {
	case start.Now: // the stable end, so that records of open transactions are not skipped
		return b.config.endOffsets(ctx, ask, topic)
	case start.Group == "":
		return allListed(ask.ListOffsetsAfterMilli(ctx, start.At.UnixMilli(), topic))
	}
	return b.othersOffsets(ctx, ask, topic)
}

// othersOffsets returns the offsets of the group Start.Group. For a partition without an offset of Start.Group, the
// result is the beginning of the partition.
func (b *beginnings) othersOffsets(ctx context.Context, ask *kadm.Client, topic string) (kadm.ListedOffsets, error) {
	offsets, err := ask.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	others, err := ask.FetchOffsets(ctx, b.config.Start.Group)
	switch {
	case errors.Is(err, kerr.GroupIDNotFound) || err == nil && len(others) == 0:
		return nil, fmt.Errorf("Start.Group is %s, and there is no such group with offsets; correct its name, or remove it to begin at the beginning", b.config.Start.Group)
	case err != nil:
		return nil, explain(err, topic, b.config.Start.Group)
	}
	for partition, o := range others[topic] {
		if at, known := offsets.Lookup(topic, partition); known && o.At >= 0 {
			at.Offset = max(at.Offset, o.At)
			offsets[topic][partition] = at
		}
	}
	return offsets, offsets.Error()
}
