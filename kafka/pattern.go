package kafka

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/contract"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// With Config.TopicPattern this source finds the topics, not the client: which
// of them is new must be known, and where it begins be kept, before anything of
// it is read. The client is given names, at the join and later.

const (
	// seekEvery is how often topics are looked for while none matches. It is
	// also how a source that has nothing to read knows that the brokers answer.
	seekEvery = heartbeat
	// addSettles is how long a topic that was added may take to be shared out
	// in the group; until then the source is not idle.
	addSettles = 10 * time.Second
)

// compilePattern anchors a pattern at both ends of a topic's name.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(pattern); err != nil { // as it was written, so that the error shows that
		return nil, err
	}
	return regexp.Compile(`\A(?:` + pattern + `)\z`)
}

// wanted is what a source with a pattern knows of topics. Its fields are
// guarded by Source.mu.
type wanted struct {
	pattern *regexp.Regexp // nil with Config.Topics
	// there are all topics of the cluster, as the last join found them, and
	// atFirst those that were there when the group first joined; see elder.
	there, atFirst map[elder]bool
	// missing are topics that are read and were not there at the last look, and
	// since when.
	missing map[string]time.Time
	// next is when to look again, added when a topic was added last, told when
	// it was logged that none matches.
	next, added, told time.Time
	// none: the last join found nothing to read; the next waits for a topic.
	// answers: Fetch is to bring nothing once, which shows that the brokers
	// answer; else a lane would.
	none, answers bool
	// passed: it was logged that the topic for dead letters is not read.
	passed bool
}

// listing are the topics that match, with their ids, and how many brokers there are.
type listing struct {
	topics  map[string][16]byte
	there   map[elder]bool
	brokers int
}

// listTopics asks for all topics and finds those that match. The brokers' own
// topics and the one for dead letters never do: dead letters would come again
// as messages. One without a leader is found at a later look.
func (s *Source) listTopics(ctx context.Context) (listing, error) {
	response, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, s.side) // no names: all
	if err != nil {
		return listing{}, s.unreachable(err)
	}
	found := listing{map[string][16]byte{}, map[elder]bool{}, len(response.Brokers)}
	for _, t := range response.Topics {
		if t.Topic == nil || t.ErrorCode != 0 || t.IsInternal || strings.HasPrefix(*t.Topic, "__") {
			continue
		}
		found.there[elderOf(*t.Topic, t.TopicID)] = true
		switch {
		case !s.wanted.pattern.MatchString(*t.Topic):
		case *t.Topic == s.config.DeadLetters:
			s.passLetters()
		default:
			found.topics[*t.Topic] = t.TopicID
		}
	}
	return found, nil
}

// passLetters says once that dead letters are not read.
func (s *Source) passLetters() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.wanted.passed {
		s.config.Logger.Warn("the pattern matches the topic for dead letters, too; it is not read",
			"group", s.config.Group, "pattern", s.config.TopicPattern, "topic", s.config.DeadLetters)
	}
	s.wanted.passed = true
}

// askPattern notes the topics that match and their ids. Those that are read
// change only before a member is made.
func (s *Source) askPattern(ctx context.Context) error {
	found, err := s.listTopics(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.brokers, s.wanted.there = found.brokers, found.there
	if s.member == nil {
		s.reading = slices.Sorted(maps.Keys(found.topics))
		s.wanted.missing = nil
		clear(s.topicIDs)
	}
	for _, topic := range s.reading { // one look without a topic makes no other topic of it
		if id, there := found.topics[topic]; there {
			s.topicIDs[topic] = id
		}
	}
	s.tellNone(time.Now())
	return nil
}

// tellNone logs now and then that there is nothing to read. Called with
// Source.mu held.
func (s *Source) tellNone(now time.Time) {
	if len(s.reading) > 0 || !s.wanted.told.IsZero() && now.Sub(s.wanted.told) < standsEvery {
		return
	}
	s.wanted.told = now
	s.config.Logger.Warn("no topic matches the pattern, or this user may not see one (it needs DESCRIBE); one that is created is read",
		"group", s.config.Group, "pattern", s.config.TopicPattern)
}

// seek looks for topics from time to time.
func (s *Source) seek(now time.Time) {
	s.mu.Lock()
	due := s.wanted.pattern != nil && !s.wanted.next.After(now)
	if due {
		s.wanted.next = now.Add(metadataAge)
		if s.member == nil {
			s.wanted.next = now.Add(seekEvery)
		}
	}
	s.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(s.life, askTimeout)
	defer cancel()
	_ = s.lookForTopics(ctx) // Fetch says what is wrong with the brokers
}

// lookForTopics compares what matches now with what is read. A topic that is
// new is added to what the member reads; where one is gone, or was created
// anew, a new member begins.
func (s *Source) lookForTopics(ctx context.Context) error {
	found, err := s.listTopics(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	member := s.member
	if member == nil { // the next join finds them
		switch {
		case len(found.topics) == 0:
			s.tellNone(time.Now())
		case s.wanted.none:
			s.wanted.none = false
			s.gate.rouse()
		}
		s.mu.Unlock()
		return nil
	}
	s.compare(found)
	added := map[string][16]byte{}
	for topic, id := range found.topics {
		if !slices.Contains(s.reading, topic) {
			added[topic], s.topicIDs[topic] = id, id
		}
	}
	s.mu.Unlock()
	if len(added) == 0 {
		return nil
	}
	return s.addTopics(ctx, member, slices.Sorted(maps.Keys(added)))
}

// compare finds out which topics are gone, or others. A broker that has just
// started may not know all of them yet, so one look alone does not count.
// Called with Source.mu held.
func (s *Source) compare(found listing) {
	missing := map[string]time.Time{}
	for _, topic := range s.reading {
		id, there := found.topics[topic]
		switch {
		case !there && s.wanted.missing[topic].IsZero():
			missing[topic] = time.Now()
		case !there:
			missing[topic] = s.wanted.missing[topic]
			if time.Since(missing[topic]) >= seekEvery {
				s.letGo(topic, errors.New("it is not among the topics that this user may see"))
			}
		case s.topicIDs[topic] != id:
			s.replace("topic " + topic + " was created anew")
		}
	}
	s.wanted.missing = missing
}

// foundNone reports whether Fetch is to bring nothing, once after each join that
// found nothing to read.
func (s *Source) foundNone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	answers := s.wanted.answers
	s.wanted.answers = false
	return answers
}

// letGo says that a topic was deleted, and lets a new member go on without it:
// with a pattern others are no reason to wait. Called with Source.mu held.
func (s *Source) letGo(topic string, why error) {
	if s.wanted.pattern == nil {
		s.faults.add(why)
	} else if s.rejoin == "" {
		s.config.Logger.Warn("a topic was deleted, or deleted and created anew, and is let go: what it held and was not read is lost, what was applied stays applied; if it is there again it is read from its beginning",
			"group", s.config.Group, "topic", topic, "error", why)
	}
	s.replace("topic " + topic + " was deleted")
}

// addTopics lets the member read further topics, when it is kept where they
// begin. While the store does not answer they wait for the next look.
func (s *Source) addTopics(ctx context.Context, member *kgo.Client, added []string) error {
	var down errMemory
	if err := s.decideTopics(ctx, added); errors.As(err, &down) {
		return err
	}
	s.mu.Lock()
	added = slices.DeleteFunc(added, func(topic string) bool { return slices.Contains(s.reading, topic) })
	now := s.member == member && len(added) > 0
	if now {
		s.reading = append(slices.Clone(s.reading), added...)
		s.wanted.added = time.Now()
		s.config.Logger.Info("topics match the pattern now and are read, too", "group", s.config.Group, "topics", added)
	}
	s.mu.Unlock()
	if now { // its callbacks wait for mu
		member.AddConsumeTopics(added...)
	}
	return nil
}

// topicsSettled reports whether no topic was added just now, of which the group has
// not said yet who reads it.
func (s *Source) topicsSettled(ctx context.Context) (bool, error) {
	if s.wanted.pattern == nil {
		return true, nil
	}
	s.mu.Lock()
	joined := s.member != nil
	s.mu.Unlock()
	if !joined {
		return false, nil
	}
	if err := s.lookForTopics(ctx); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.wanted.missing) == 0 && time.Since(s.wanted.added) >= addSettles, nil
}

// elder is a topic that was there when the group first joined, by its name and
// id. Start is for such topics only: one that was created later, also while no
// process ran, is read from its beginning.
type elder [16]byte

func elderOf(topic string, id [16]byte) elder {
	sum := sha256.Sum256(append(id[:], topic...))
	return elder(sum[:16])
}

// eldersName names them in the store. No topic has this name.
func eldersName(group string) string { return beginningName(group, "*") }

// eldersForm is the first byte of Position.Check; each elder follows, and
// Position.Length counts them.
const eldersForm = 1

func eldersPosition(there map[elder]bool) contract.Position {
	all := slices.SortedFunc(maps.Keys(there), func(a, b elder) int { return bytes.Compare(a[:], b[:]) })
	check := []byte{eldersForm}
	for _, e := range all {
		check = append(check, e[:]...)
	}
	return contract.Position{Length: int64(len(all)), Check: check}
}

func eldersOf(p contract.Position) (map[elder]bool, error) {
	if len(p.Check) == 0 || p.Check[0] != eldersForm || int64(len(p.Check)-1) != p.Length*int64(len(elder{})) {
		return nil, errBeginning
	}
	all := map[elder]bool{}
	for e := range slices.Chunk(p.Check[1:], len(elder{})) {
		all[elder(e)] = true
	}
	return all, nil
}

// decideElders finds out, or keeps in the store, which topics were there when
// the group first joined by a pattern. It comes before the first topic begins.
func (s *Source) decideElders(ctx context.Context) error {
	s.mu.Lock()
	known, there := s.wanted.pattern == nil || s.wanted.atFirst != nil, s.wanted.there
	s.mu.Unlock()
	if known {
		return nil
	}
	name := eldersName(s.config.Group)
	atFirst, err := s.memory.elders(ctx, name, there)
	if err != nil {
		return errMemory{fmt.Errorf("kafka: which topics were there when group %s first joined is not known, and nothing is read: position %s of consumer %s in the store: %w", s.config.Group, name, s.memory.consumer, err)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted.atFirst = atFirst
	return nil
}

// elders are those that are kept; there, if none are.
func (m memory) elders(ctx context.Context, name string, there map[elder]bool) (map[elder]bool, error) {
	if m.store == nil {
		return there, nil
	}
	p, known, err := m.store.LoadPosition(ctx, m.consumer, name)
	if err == nil && !known {
		p, err = m.store.KeepPosition(ctx, m.consumer, name, eldersPosition(there))
	}
	if err != nil {
		return nil, err
	}
	return eldersOf(p)
}

// younger reports whether a topic came after the group's first join, so that
// Start is not for it.
func (s *Source) younger(topic string, id [16]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted.pattern != nil && !s.wanted.atFirst[elderOf(topic, id)]
}
