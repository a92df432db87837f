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

// With Config.TopicPattern, the source itself finds the topics; the client gets only the names of the topics, at the
// join and later. The reason is that, before the client reads a new topic, the source must know that the topic is new
// and must store the topic's start position.

// seekEvery is the interval at which the source looks for topics while no topic matches. The requests of the search
// also show whether the brokers answer, because the source sends no other requests while no topic matches.
const seekEvery = heartbeat

// CompilePattern compiles Config.TopicPattern into the expression with which the source matches topics. The expression
// matches whole names only. The error contains the pattern as written.
func CompilePattern(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil { // the anchors below would make some invalid patterns valid
		return nil, err
	}
	return regexp.Compile(`\A(?:` + pattern + `)\z`)
}

// search is the state of the search for topics by pattern. topics.mu guards the fields.
type search struct {
	// All topics of the cluster at the time of the last join.
	atJoin map[stored.TopicKey]bool
	// The topics that are read but that the last search did not find, with the time since when they are missing.
	missing map[string]time.Time
	// The added topics that the group has not assigned yet, with their number of partitions.
	unassigned map[string]int
	// nextSearch is the time of the next search. lastLogged is the time of the last log line that no topic
	// matches.
	nextSearch, lastLogged time.Time
	// noTopics is true if the last join found no topic to read, so that the next join waits for a topic. The
	// field answerOnce is true if Fetch must return once without deliveries, which shows the consumer that the brokers
	// answer although there is no lane.
	noTopics, answerOnce bool
	// letterTopicLogged is true if the log already contains the line that the topic for dead letters is not read.
	letterTopicLogged bool
}

// listing is the result of the method list: matching topics, keys of all topics, and the number of brokers.
type listing struct {
	topics      map[string]listedTopic
	there       map[stored.TopicKey]bool
	brokerCount int
}

type listedTopic struct {
	id         [16]byte
	partitions int
}

// list requests all topics and returns the matching topics. The brokers' internal topics never match. The
// topic for dead letters never matches, because its records would be delivered again as messages. A topic
// without a leader is found later.
func (t *topics) list(ctx context.Context) (listing, error) {
	response, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, t.brokers.client()) // without names the brokers return all topics
	if err != nil {
		return listing{}, t.brokers.unreachableError(err)
	}
	found := listing{map[string]listedTopic{}, map[stored.TopicKey]bool{}, len(response.Brokers)}
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
			found.topics[*one.Topic] = listedTopic{one.TopicID, len(one.Partitions)}
		}
	}
	return found, nil
}

// passLetters logs once that the topic for dead letters is not read.
func (t *topics) passLetters() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.search.letterTopicLogged {
		t.config.Logger.Warn("the pattern also matches the topic for dead letters, which is not read",
			"group", t.config.Group, "pattern", t.config.TopicPattern, "topic", t.config.DeadLetters)
	}
	t.search.letterTopicLogged = true
}

// askPattern stores the matching topics and their ids. The list of topics that are read changes only while
// there is no member.
func (t *topics) askPattern(ctx context.Context) error {
	found, err := t.list(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.brokerCount, t.search.atJoin = found.brokerCount, found.there
	if t.member.currentClient() == nil {
		t.reading = slices.Sorted(maps.Keys(found.topics))
		t.search.missing, t.search.unassigned = nil, nil // the next member joins with all these topics
		clear(t.ids)
	}
	for _, topic := range t.reading { // a single answer without a topic does not mean that the topic was deleted
		if one, there := found.topics[topic]; there {
			t.ids[topic] = one.id
		}
	}
	t.logNoTopics(time.Now())
	return nil
}

// topicsAtJoin returns all topics of the cluster at the time of the last join.
func (t *topics) topicsAtJoin() map[stored.TopicKey]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.search.atJoin
}

// logNoTopics logs that no topic matches, at most once per standsEvery. The caller holds topics.mu.
func (t *topics) logNoTopics(now time.Time) {
	if len(t.reading) > 0 || !t.search.lastLogged.IsZero() && now.Sub(t.search.lastLogged) < standsEvery {
		return
	}
	t.search.lastLogged = now
	t.config.Logger.Warn("no topic matches the pattern, or this user may not see it (it needs DESCRIBE); a matching topic that is created later will be read",
		"group", t.config.Group, "pattern", t.config.TopicPattern)
}

// isDue reports whether it is time to look for topics.
func (t *topics) isDue(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pattern == nil || t.search.nextSearch.After(now) {
		return false
	}
	t.search.nextSearch = now.Add(metadataAge)
	if t.member.currentClient() == nil {
		t.search.nextSearch = now.Add(seekEvery)
	}
	return true
}

// look compares the matching topics with the topics that are read. If a topic was deleted or created again, look
// demands a new member. look returns the topics to add to the member, with their number of partitions. If there is no
// member, the next join finds new topics.
func (t *topics) look(ctx context.Context) (client *kgo.Client, added map[string]int, err error) {
	found, err := t.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if client = t.member.currentClient(); client == nil {
		t.resumeJoin(found)
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

// resumeJoin allows the next join if the join waits for a topic and the search has found a topic. The caller
// holds topics.mu.
func (t *topics) resumeJoin(found listing) {
	switch {
	case len(found.topics) == 0:
		t.logNoTopics(time.Now())
	case t.search.noTopics:
		t.search.noTopics = false
		t.faults.gate.wakeUp()
	}
}

// compare finds topics that were deleted or created again. A broker that has just started may not know all
// topics, so a topic counts as deleted only if it is missing for seekEvery. The caller holds topics.mu.
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

// hasNoTopics reports whether the last join found no topic, and no topic was found after the join.
func (t *topics) hasNoTopics() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.search.noTopics
}

// takeNoTopics reports whether Fetch must return without deliveries. After each join that found no topic, the result is
// true once.
func (t *topics) takeNoTopics() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	answers := t.search.answerOnce
	t.search.answerOnce = false
	return answers
}

// add makes the member read further topics. The store already has the begin offsets of these topics.
func (t *topics) add(client *kgo.Client, added map[string]int) {
	if names := t.markAdded(client, added); len(names) > 0 {
		client.AddConsumeTopics(names...) // the ids must be stored first, because callbacks of the client need the ids
	}
}

// markAdded marks topics as read, and returns the topics that were not read before.
func (t *topics) markAdded(client *kgo.Client, added map[string]int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(added)), func(topic string) bool { return slices.Contains(t.reading, topic) })
	if !t.member.isCurrent(client) || len(names) == 0 {
		return nil
	}
	t.reading = append(slices.Clone(t.reading), names...)
	if t.search.unassigned == nil {
		t.search.unassigned = map[string]int{}
	}
	for _, topic := range names {
		t.search.unassigned[topic] = added[topic]
	}
	t.config.Logger.Info("new topics match the pattern and will be read", "group", t.config.Group, "topics", names)
	return names
}

// unassignedTopics returns the added topics that the group has not assigned yet, with their number of partitions. The
// result incomplete is true if the last search did not find a topic that is read.
func (t *topics) unassignedTopics() (topics map[string]int, incomplete bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.search.unassigned), len(t.search.missing) > 0
}

// markAssigned removes a topic from the unassigned topics, because the group has assigned the topic.
func (t *topics) markAssigned(topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.search.unassigned, topic)
}

// No process reads a newly added topic until the group has rebalanced. The rebalance takes as long as the slowest
// member needs to give up lanes. Until all added topics are assigned, a source without unread records does not count as
// idle; the source asks the group which member reads each added topic.

// memberPartitions contains the assigned partitions of each member.
type memberPartitions map[string]kadm.TopicsSet

// topicsAssigned reports whether the group has assigned all added topics.
func (s *Source) topicsAssigned(ctx context.Context) (bool, error) {
	if s.topics.pattern == nil {
		return true, nil
	}
	client := s.member.currentClient()
	if client == nil {
		return false, nil
	}
	if err := s.beginnings.look(ctx); err != nil {
		return false, err
	}
	added, unsure := s.topics.unassignedTopics()
	if len(added) == 0 {
		return !unsure, nil
	}
	given, err := s.brokers.requestAssignments(ctx, s.topics.allIDs())
	if err != nil {
		return false, fmt.Errorf("kafka: group %s: the assignment of the added topics is not known: %w", s.config.Group, err)
	}
	own := ownerOf(client).member
	for topic, partitions := range added {
		if !s.isAssigned(given, own, topic, partitions) {
			return false, nil
		}
		s.topics.markAssigned(topic)
	}
	return !unsure, nil
}

// isAssigned reports whether each partition of a topic is assigned, and whether this member has lanes for all
// its own partitions.
func (s *Source) isAssigned(given memberPartitions, own, topic string, partitions int) bool {
	read := kadm.TopicsSet{}
	for member, has := range given {
		for partition := range has[topic] {
			if member == own && !s.lanes.hasLane(topicPartition{topic, partition}) {
				return false
			}
			read.Add(topic, partition)
		}
	}
	return len(read[topic]) >= partitions
}

// requestAssignments requests the assignment from the group. The parameter ids contains the ids of the topics, because
// with NextGen the answer may contain only ids.
func (b *brokers) requestAssignments(ctx context.Context, ids map[string][16]byte) (memberPartitions, error) {
	if b.config.NextGen {
		return b.requestAssignmentsByBrokers(ctx, ids)
	}
	group := b.config.Group
	groups, err := kadm.NewClient(b.client()).DescribeGroups(ctx, group)
	if err != nil {
		return nil, err
	}
	all := memberPartitions{}
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

// requestAssignmentsByBrokers does the same as requestAssignments, for groups whose brokers assign the partitions
// (KIP-848).
func (b *brokers) requestAssignmentsByBrokers(ctx context.Context, ids map[string][16]byte) (memberPartitions, error) {
	request := kmsg.NewPtrConsumerGroupDescribeRequest()
	request.Groups = []string{b.config.Group}
	response, err := request.RequestWith(ctx, b.client())
	if err != nil {
		return nil, err
	}
	all := memberPartitions{}
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
