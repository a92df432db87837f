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

// With Config.TopicPattern this source finds the topics, not the client: which
// of them is new must be known, and where it begins be kept, before anything of
// it is read. The client is given names, at the join and later.

// seekEvery is how often topics are looked for while none matches. It is also how
// a source that has nothing to read knows that the brokers answer.
const seekEvery = heartbeat

// CompilePattern makes of Config.TopicPattern the expression that topics are
// matched with: it matches whole names only. Its error shows the pattern as it
// was written.
func CompilePattern(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil { // also where the anchors would make it valid
		return nil, err
	}
	return regexp.Compile(`\A(?:` + pattern + `)\z`)
}

// search is what a source with a pattern knows beside the topics that it reads.
// Its fields are guarded by topics.mu.
type search struct {
	// there are all topics of the cluster, as the last join found them.
	there map[stored.TopicKey]bool
	// missing are topics that are read and were not there at the last look, and
	// since when.
	missing map[string]time.Time
	// unshared are topics that were added and of which the group has not said yet
	// who reads them, with the number of their partitions.
	unshared map[string]int
	// next is when to look again, told when it was logged that none matches.
	next, told time.Time
	// none: the last join found nothing to read; the next waits for a topic.
	// answers: Fetch is to bring nothing once, which shows that the brokers
	// answer; else a lane would.
	none, answers bool
	// passedLetters: it was logged that the topic for dead letters is not read.
	passedLetters bool
}

// listing are the topics that match, and how many brokers there are.
type listing struct {
	topics      map[string]listed
	there       map[stored.TopicKey]bool
	brokerCount int
}

type listed struct {
	id         [16]byte
	partitions int
}

// list asks for all topics and finds those that match. The brokers' own topics
// and the one for dead letters never do: dead letters would come again as
// messages. One without a leader is found at a later look.
func (t *topics) list(ctx context.Context) (listing, error) {
	response, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, t.brokers.client()) // no names: all
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

// passLetters says once that dead letters are not read.
func (t *topics) passLetters() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.search.passedLetters {
		t.config.Logger.Warn("the pattern matches the topic for dead letters, too; it is not read",
			"group", t.config.Group, "pattern", t.config.TopicPattern, "topic", t.config.DeadLetters)
	}
	t.search.passedLetters = true
}

// askPattern notes the topics that match and their ids. Those that are read
// change only before a member is made.
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
		t.search.missing, t.search.unshared = nil, nil // the next member joins with all of them
		clear(t.ids)
	}
	for _, topic := range t.reading { // one look without a topic makes no other topic of it
		if one, there := found.topics[topic]; there {
			t.ids[topic] = one.id
		}
	}
	t.tellNone(time.Now())
	return nil
}

// there are all topics of the cluster, as the last join found them.
func (t *topics) there() map[stored.TopicKey]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.search.there
}

// tellNone logs now and then that there is nothing to read. Called with
// topics.mu held.
func (t *topics) tellNone(now time.Time) {
	if len(t.reading) > 0 || !t.search.told.IsZero() && now.Sub(t.search.told) < standsEvery {
		return
	}
	t.search.told = now
	t.config.Logger.Warn("no topic matches the pattern, or this user may not see one (it needs DESCRIBE); one that is created is read",
		"group", t.config.Group, "pattern", t.config.TopicPattern)
}

// due reports, from time to time, whether topics are to be looked for.
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

// look compares what matches now with what is read. Where a topic is gone, or
// was created anew, a new member begins. It returns topics that the member is to
// read, too, with the number of their partitions; while there is no member, the
// next join finds them.
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

// awaited lets the next join begin if it has something to read. Called with
// topics.mu held.
func (t *topics) awaited(found listing) {
	switch {
	case len(found.topics) == 0:
		t.tellNone(time.Now())
	case t.search.none:
		t.search.none = false
		t.faults.gate.rouse()
	}
}

// compare finds out which topics are gone, or others. A broker that has just
// started may not know all of them yet, so one look alone does not count.
// Called with topics.mu held.
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
				t.faults.topicDeleted(topic, errors.New("it is not among the topics that this user may see"))
			}
		case t.ids[topic] != one.id:
			t.member.demandReplacement("topic "+topic+" was created anew", allOf(topic))
		}
	}
	t.search.missing = missing
}

// none reports whether the last join found no topic, and none has come since.
func (t *topics) none() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.search.none
}

// foundNone reports whether Fetch is to bring nothing, once after each join that
// found nothing to read.
func (t *topics) foundNone() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	answers := t.search.answers
	t.search.answers = false
	return answers
}

// add lets the member read further topics. It is kept where they begin.
func (t *topics) add(client *kgo.Client, added map[string]int) {
	if names := t.adding(client, added); len(names) > 0 {
		client.AddConsumeTopics(names...) // its callbacks ask for ids
	}
}

// adding are those that are not read yet.
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
	t.config.Logger.Info("topics match the pattern now and are read, too", "group", t.config.Group, "topics", names)
	return names
}

// unshared are topics that were added and of which the group has not said yet who
// reads them, with the number of their partitions. Unsure says that a topic was
// not found at the last look.
func (t *topics) unshared() (topics map[string]int, unsure bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.search.unshared), len(t.search.missing) > 0
}

// shared notes a topic of which the group has said who reads it.
func (t *topics) shared(topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.search.unshared, topic)
}

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
