package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/retention"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// endsInterval is the interval of requests for the ends of partitions if Config.Observe is set. The
	// constant askEvery is the interval without Observe, and also while the brokers do not answer, because the client
	// logs each attempt.
	endsInterval = time.Second
	askEvery     = 15 * time.Second
	// The time for which a transaction may stay open at a lane's position before the source logs a warning.
	heldUpAfter = time.Minute
)

// topics holds the topics that are read, with their ids: the topics of Config.Topics, or the topics that match
// the pattern (see search).
type topics struct {
	config  *Config
	brokers *brokers
	member  *member
	faults  *faultList
	pattern *regexp.Regexp // nil with Config.Topics

	// mu guards the fields below. mu is never held during a blocking call. A goroutine that holds mu may lock only the
	// mutexes of member, faults and gate.
	mu sync.Mutex
	// The names of the topics that are read. The slice is replaced, never changed.
	reading []string
	// The ids of the topics at the time when this member joined.
	ids map[string][16]byte
	// The number of brokers at the time when this member joined.
	brokerCount int
	search      search
}

func newTopics(c *Config, b *brokers, m *member, f *faultList) *topics {
	t := &topics{config: c, brokers: b, member: m, faults: f, reading: c.Topics, ids: map[string][16]byte{}}
	if c.TopicPattern != "" {
		t.pattern, _ = CompilePattern(c.TopicPattern) // validate has checked the pattern
	}
	return t
}

// ask requests the metadata of the topics and stores their ids.
func (t *topics) ask(ctx context.Context) error {
	named := t.namedTopics()
	if t.pattern != nil {
		if err := t.askPattern(ctx); err != nil || len(named) == 0 {
			return err
		}
	}
	response, err := metadataOf(named...).RequestWith(ctx, t.brokers.client())
	if err != nil {
		return t.brokers.unreachableError(err)
	}
	return t.note(len(response.Brokers), response.Topics)
}

// namedTopics returns the topics to request by name: the topics of Config.Topics, which must all exist, and the
// topic for dead letters.
func (t *topics) namedTopics() []string {
	if t.config.DeadLetters == "" {
		return t.config.Topics
	}
	return append(append([]string{}, t.config.Topics...), t.config.DeadLetters)
}

// note stores the topics' ids. Commits contain the topics' ids, because a topic that was deleted and created again has
// another id.
func (t *topics) note(brokers int, answers []kmsg.MetadataResponseTopic) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.brokerCount = brokers
	var errs error
	for _, answer := range answers {
		if answer.Topic == nil {
			continue
		}
		if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
			errs = errors.Join(errs, t.explain(err, *answer.Topic))
			continue // an answer with an error has no id; the zero id would look like another topic
		}
		t.ids[*answer.Topic] = answer.TopicID
	}
	return errs
}

// The method explain returns the same as the function explain, except for the topic for dead letters: the source also
// writes to this topic, and needs another privilege.
func (t *topics) explain(err error, topic string) error {
	if topic == t.config.DeadLetters && errors.Is(err, kerr.TopicAuthorizationFailed) {
		return fmt.Errorf("kafka: this user may not write dead letters to topic %s; allow it WRITE and DESCRIBE: %w", topic, err)
	}
	return explain(err, topic, t.config.Group)
}

// checkTopicIDs requests the topics' ids again. If a topic was deleted and created again since this member joined the
// group, a new member replaces this member.
func (t *topics) checkTopicIDs(ctx context.Context) error {
	before := t.allIDs()
	err := t.ask(ctx)
	now := t.allIDs()
	// The ids are compared even if the request failed for another topic: the new id is already stored, so the
	// next call would find no difference.
	for topic, id := range before {
		if now[topic] != id {
			t.member.demandReplacement("topic "+topic+" was created again", allOf(topic))
			return fmt.Errorf("topic %s was just deleted and created again", topic)
		}
	}
	return err
}

func (t *topics) allIDs() map[string][16]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.ids)
}

func (t *topics) id(topic string) [16]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ids[topic]
}

// topicsRead returns the topics that the source reads.
func (t *topics) topicsRead() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reading
}

// topicsToRead returns the topics to read and the number of brokers. If no topic exists, the next join waits for a
// topic.
func (t *topics) topicsToRead() ([]string, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.reading) == 0 {
		t.search.noTopics, t.search.answerOnce = true, true
	}
	return t.reading, t.brokerCount
}

// search runs in a goroutine of its own, because it waits for the store. The method looks for topics that match the
// pattern, and for start positions that could not be found before.
func (s *Source) search() {
	ticker := time.NewTicker(endsInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case now := <-ticker.C:
			s.seek(now)
			s.beginnings.decideAgain(s.life, now)
		}
	}
}

// watch supervises the source: it replaces the member if necessary, requests the ends of logs, and reports the
// states of lanes.
func (s *Source) watch() {
	ticker := time.NewTicker(endsInterval)
	defer ticker.Stop()
	var next time.Time
	for {
		select {
		case <-s.life.Done():
			return
		case <-s.lanes.changed:
		case now := <-ticker.C:
			s.skipLost()
			s.faults.remind()
			s.group.replaceMember(now)
			if s.brokers.unanswered.Within(lateness, now) {
				s.commits.wakeUp()
			}
			if !now.Before(next) && s.lanes.hasAny() {
				next = now.Add(askEvery)
				if s.lookForTopics() && s.config.Observe != nil {
					next = now
				}
			}
		}
		s.progress.logFaults(time.Now())
		s.report()
	}
}

// seek looks periodically for topics that match the pattern.
func (s *Source) seek(now time.Time) {
	if !s.topics.isDue(now) {
		return
	}
	ctx, cancel := context.WithTimeout(s.life, askTimeout)
	defer cancel()
	_ = s.beginnings.look(ctx) // Fetch returns the errors of the brokers
}

// lookForTopics requests the beginnings and ends of the partitions, and reports whether the brokers answered. If the
// brokers are unreachable, the error comes from Fetch.
func (s *Source) lookForTopics() bool {
	ctx, cancel := context.WithTimeout(s.life, askTimeout)
	defer cancel()
	if s.askEnds(ctx) != nil {
		return false
	}
	s.askStalled(ctx)
	s.askUnread(ctx)
	return true
}

// report passes the states of all lanes to Observe. A lost lane is reported one last time.
func (s *Source) report() {
	if s.config.Observe == nil {
		return
	}
	if states := s.progress.states(); len(states) > 0 {
		s.config.Observe(states)
	}
}

// horizon implements source.Info.Horizon. The horizon is the longest time for which a record can stay in a topic that
// is read now, or in the topic for dead letters. The brokers remove a segment when its newest record is older than
// retention.ms, and write to a segment for segment.ms. With producers' times (CreateTime) a record may be dated in the
// future by up to message.timestamp.after.max.ms. Size limits remove records earlier, so horizon ignores size limits.
// Tiered storage makes no difference, because retention.ms covers both tiers. A topic without a time limit, for example
// a topic that is only compacted, has the horizon Unlimited.
//
// horizon connects to the brokers if necessary. The result is an error if the brokers cannot be reached or do not
// return the settings, for example because the user has no DESCRIBE_CONFIGS on the topics. After Close, the error wraps
// semel.ErrClosed.
func (s *Source) horizon(ctx context.Context) (source.Horizon, error) {
	if open, err := s.brokers.openClient(s.startBackground); err != nil {
		return source.Horizon{}, err
	} else if !open {
		return source.Horizon{}, fmt.Errorf("kafka: the source is closed: %w", semel.ErrClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	names, err := s.topics.deliverableTopics(ctx)
	if err != nil {
		return source.Horizon{}, err
	}
	if len(names) == 0 {
		return source.Horizon{Why: "no topic matches " + s.config.TopicPattern}, nil
	}
	response, err := retention.Request(names).RequestWith(ctx, s.brokers.client())
	if err != nil {
		return source.Horizon{}, s.brokers.unreachableError(err)
	}
	all, err := retention.Read(response, func(err error, topic string) error { return explain(err, topic, s.config.Group) })
	if err != nil {
		return source.Horizon{}, err
	}
	return retention.Longest(names, all)
}

// deliverableTopics returns the topics whose records may be delivered: the topics that are read, the topics that match
// the pattern now, and the topic for dead letters.
func (t *topics) deliverableTopics(ctx context.Context) ([]string, error) {
	names := slices.Clone(t.namedTopics())
	if t.pattern != nil {
		found, err := t.list(ctx)
		if err != nil {
			return nil, err
		}
		for topic := range found.topics {
			names = append(names, topic)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
