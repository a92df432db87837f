package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// With Config.TopicPattern the source finds the topics itself, and not the client: before anything of a new topic is
// read, the source must know that it is new and store where it begins. The client gets names, at the join and later.

// seekEvery is how often topics are looked for while none matches. These requests also show whether the brokers answer
// when nothing is read.
const seekEvery = heartbeat

// CompilePattern compiles Config.TopicPattern into the expression that topics are matched with: it matches whole names
// only. Its error contains the pattern as written.
func CompilePattern(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil { // also refuses patterns that only the anchors would make valid
		return nil, err
	}
	return regexp.Compile(`\A(?:` + pattern + `)\z`)
}

// search is the state of a source with a pattern, in addition to the topics that it reads. topics.mu guards its fields.
type search struct {
	// there are all topics of the cluster at the last join.
	there map[stored.TopicKey]bool
	// missing maps topics that are read, but were not found last time, to the time since when.
	missing map[string]time.Time
	// unshared maps added topics that the group has not assigned yet to their number of partitions.
	unshared map[string]int
	// next is when to look again; told is when the log last said that no topic matches.
	next, told time.Time
	// none: the last join found no topic to read, and the next one waits for a topic. answers: Fetch must return once
	// without deliveries, which shows that the brokers answer; otherwise a lane would show it.
	none, answers bool
	// passedLetters: the log has said that the topic for dead letters is not read.
	passedLetters bool
}

// listing contains the topics that match, and the number of brokers.
type listing struct {
	topics      map[string]listed
	there       map[stored.TopicKey]bool
	brokerCount int
}

type listed struct {
	id         [16]byte
	partitions int
}

// list requests all topics and returns those that match. The brokers' internal topics and the topic for dead letters
// never match: dead letters would be delivered again as messages. A topic without a leader is found later.
func (t *topics) list(ctx context.Context) (listing, error) {
	response, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, t.brokers.client()) // no names: all topics
	if err != nil {
		return listing{}, t.brokers.unreachable(err)
	}
	found := listing{map[string]listed{}, map[stored.TopicKey]bool{}, len(response.Brokers)}
	for _, one := range response.Topics {
		if one.Topic == nil || one.ErrorCode != 0 || one.IsInternal || strings.HasPrefix(*one.Topic, "__") {
			continue
		}
		found.there[stored.TopicKeyOf(*one.Topic, one.TopicID)] = true
		switch {
		case !t.pattern.MatchString(*one.Topic):
		case *one.Topic == t.config.DeadLetters:
			t.passLetters()
		default:
			found.topics[*one.Topic] = listed{one.TopicID, len(one.Partitions)}
		}
	}
	return found, nil
}

// passLetters logs once that dead letters are not read.
func (t *topics) passLetters() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.search.passedLetters {
		t.config.Logger.Warn("the pattern also matches the topic for dead letters, which is not read",
			"group", t.config.Group, "pattern", t.config.TopicPattern, "topic", t.config.DeadLetters)
	}
	t.search.passedLetters = true
}

// askPattern stores the topics that match and their ids. The topics that are read change only before a member is
// created.
func (t *topics) askPattern(ctx context.Context) error {
	found, err := t.list(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.brokerCount, t.search.there = found.brokerCount, found.there
	if t.member.current() == nil {
		t.reading = slices.Sorted(maps.Keys(found.topics))
		t.search.missing, t.search.unshared = nil, nil // the next member joins with all topics
		clear(t.ids)
	}
	for _, topic := range t.reading { // one request without a topic does not mean that it was deleted
		if one, there := found.topics[topic]; there {
			t.ids[topic] = one.id
		}
	}
	t.tellNone(time.Now())
	return nil
}

// there returns all topics of the cluster at the last join.
func (t *topics) there() map[stored.TopicKey]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.search.there
}

// tellNone logs at intervals that there is nothing to read. The caller holds topics.mu.
func (t *topics) tellNone(now time.Time) {
	if len(t.reading) > 0 || !t.search.told.IsZero() && now.Sub(t.search.told) < standsEvery {
		return
	}
	t.search.told = now
	t.config.Logger.Warn("no topic matches the pattern, or this user may not see it (it needs DESCRIBE); a matching topic that is created later will be read",
		"group", t.config.Group, "pattern", t.config.TopicPattern)
}

// due reports, at intervals, whether to look for topics.
func (t *topics) due(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pattern == nil || t.search.next.After(now) {
		return false
	}
	t.search.next = now.Add(metadataAge)
	if t.member.current() == nil {
		t.search.next = now.Add(seekEvery)
	}
	return true
}

// look compares the topics that match now with those that are read. If a topic was deleted, or created again, a new
// member is demanded. look returns the topics to add to the member, with their number of partitions; if there is no
// member, the next join finds them.
func (t *topics) look(ctx context.Context) (client *kgo.Client, added map[string]int, err error) {
	found, err := t.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if client = t.member.current(); client == nil {
		t.awaited(found)
		return nil, nil, nil
	}
	t.compare(found)
	added = map[string]int{}
	for topic, one := range found.topics {
		if !slices.Contains(t.reading, topic) {
			t.ids[topic], added[topic] = one.id, one.partitions
		}
	}
	return client, added, nil
}

// awaited allows the next join if it has topics to read. The caller holds topics.mu.
func (t *topics) awaited(found listing) {
	switch {
	case len(found.topics) == 0:
		t.tellNone(time.Now())
	case t.search.none:
		t.search.none = false
		t.faults.gate.rouse()
	}
}

// compare finds topics that were deleted or created again. A broker that has just started may not know all topics, so a
// single answer does not count. The caller holds topics.mu.
func (t *topics) compare(found listing) {
	missing := map[string]time.Time{}
	for _, topic := range t.reading {
		one, there := found.topics[topic]
		switch {
		case !there && t.search.missing[topic].IsZero():
			missing[topic] = time.Now()
		case !there:
			missing[topic] = t.search.missing[topic]
			if time.Since(missing[topic]) >= seekEvery {
				t.faults.topicDeleted(topic, errors.New("the topic does not exist, or this user may not see it"))
			}
		case t.ids[topic] != one.id:
			t.member.demandReplacement("topic "+topic+" was created again", allOf(topic))
		}
	}
	t.search.missing = missing
}

// none reports whether the last join found no topic, and none was found since.
func (t *topics) none() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.search.none
}

// foundNone reports whether Fetch must return without deliveries, once after each join that found nothing to read.
func (t *topics) foundNone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	answers := t.search.answers
	t.search.answers = false
	return answers
}

// add makes the member read further topics. Where they begin is stored already.
func (t *topics) add(client *kgo.Client, added map[string]int) {
	if names := t.adding(client, added); len(names) > 0 {
		client.AddConsumeTopics(names...) // its callbacks need their ids
	}
}

// adding returns the topics that are not read yet, and adds them.
func (t *topics) adding(client *kgo.Client, added map[string]int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(added)), func(topic string) bool { return slices.Contains(t.reading, topic) })
	if !t.member.is(client) || len(names) == 0 {
		return nil
	}
	t.reading = append(slices.Clone(t.reading), names...)
	if t.search.unshared == nil {
		t.search.unshared = map[string]int{}
	}
	for _, topic := range names {
		t.search.unshared[topic] = added[topic]
	}
	t.config.Logger.Info("new topics match the pattern and will be read", "group", t.config.Group, "topics", names)
	return names
}

// unshared returns the added topics that the group has not assigned yet, with their number of partitions. unsure means
// that a topic was not found last time.
func (t *topics) unshared() (topics map[string]int, unsure bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.search.unshared), len(t.search.missing) > 0
}

// shared removes a topic that the group has assigned.
func (t *topics) shared(topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.search.unshared, topic)
}

// A matching topic that was just added is read by no process until the group has rebalanced, which takes as long as its
// slowest member needs to give up lanes. Until then a source that has nothing to read is not idle; it asks the group who
// reads the topic.

// shares contains the partitions that the group has assigned, by member.
type shares map[string]kadm.TopicsSet

// topicsShared reports whether the group has assigned the added topics.
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
		return false, fmt.Errorf("kafka: group %s: the assignment of the added topics is not known: %w", s.config.Group, err)
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

// shared reports whether each partition of a topic is assigned, and whether this member has received its own partitions.
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

// shares asks the group for its assignment. ids are the ids of the topics, because brokers that assign partitions name a
// topic by its id.
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

// sharesByBrokers is shares for groups with broker-side assignment (KIP-848).
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
