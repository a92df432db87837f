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
	// lookEvery is how often the ends of partitions are asked for with
	// Config.Observe, and askEvery how often without it, or while the brokers do
	// not answer: the client logs each try.
	lookEvery = time.Second
	askEvery  = 15 * time.Second
	// heldUpAfter is how long a transaction may stay open at the head of what
	// is to be read before it is logged.
	heldUpAfter = time.Minute
)

// topics are what is read, and as which topics: those of Config.Topics, or those
// that match the pattern, see search.
type topics struct {
	config  *Config
	brokers *brokers
	member  *member
	faults  *faultList
	pattern *regexp.Regexp // nil with Config.Topics

	// mu guards the rest. Its holder waits for nothing, and takes only the locks of
	// member, faults and gate.
	mu sync.Mutex
	// reading are the topics that are read. It is replaced, never changed.
	reading []string
	// ids are what the topics had when this member joined.
	ids map[string][16]byte
	// brokerCount is how many brokers there were then.
	brokerCount int
	search      search
}

func newTopics(c *Config, b *brokers, m *member, f *faultList) *topics {
	t := &topics{config: c, brokers: b, member: m, faults: f, reading: c.Topics, ids: map[string][16]byte{}}
	if c.TopicPattern != "" {
		t.pattern, _ = CompilePattern(c.TopicPattern) // which validate has done
	}
	return t
}

// ask asks for the topics, and notes their ids.
func (t *topics) ask(ctx context.Context) error {
	named := t.named()
	if t.pattern != nil {
		if err := t.askPattern(ctx); err != nil || len(named) == 0 {
			return err
		}
	}
	response, err := metadataOf(named...).RequestWith(ctx, t.brokers.client())
	if err != nil {
		return t.brokers.unreachable(err)
	}
	return t.note(len(response.Brokers), response.Topics)
}

// named are asked for by name: those of Config.Topics, which must all exist,
// and the one for dead letters.
func (t *topics) named() []string {
	if t.config.DeadLetters == "" {
		return t.config.Topics
	}
	return append(append([]string{}, t.config.Topics...), t.config.DeadLetters)
}

// note notes the topics' ids, under which offsets are committed: a topic that is
// created anew has another one.
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
			continue // without an id, which would look like another topic's
		}
		t.ids[*answer.Topic] = answer.TopicID
	}
	return errs
}

// explain is for a topic that may be the one for dead letters, which is written to.
func (t *topics) explain(err error, topic string) error {
	if topic == t.config.DeadLetters && errors.Is(err, kerr.TopicAuthorizationFailed) {
		return fmt.Errorf("kafka: this user may not write dead letters to topic %s; allow it WRITE and DESCRIBE: %w", topic, err)
	}
	return explain(err, topic, t.config.Group)
}

// same asks for the topics' ids again: one may have been created anew since this
// member joined. Then a new member begins.
func (t *topics) same(ctx context.Context) error {
	before := t.allIDs()
	err := t.ask(ctx)
	now := t.allIDs()
	// Also where another topic was refused: its id is noted, and the next look
	// would find nothing new.
	for topic, id := range before {
		if now[topic] != id {
			t.member.demandReplacement("topic "+topic+" was created anew", allOf(topic))
			return fmt.Errorf("topic %s was deleted and created anew just now", topic)
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

// read are the topics that are read.
func (t *topics) read() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reading
}

// toRead are the topics to be read, and how many brokers there are. Where there
// is no topic, the next join waits for one.
func (t *topics) toRead() ([]string, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.reading) == 0 {
		t.search.none, t.search.answers = true, true
	}
	return t.reading, t.brokerCount
}

// search looks for topics that match the pattern, and for beginnings that could
// not be found. It waits for the store; so nothing else waits for it.
func (s *Source) search() {
	ticker := time.NewTicker(lookEvery)
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

// watch looks after the source: it replaces a member that must be, asks for the
// ends of logs, and reports lanes.
func (s *Source) watch() {
	ticker := time.NewTicker(lookEvery)
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
				s.commits.rouse()
			}
			if !now.Before(next) && s.lanes.any() {
				next = now.Add(askEvery)
				if s.look() && s.config.Observe != nil {
					next = now
				}
			}
		}
		s.progress.logFaults(time.Now())
		s.report()
	}
}

// seek looks from time to time for topics that match the pattern.
func (s *Source) seek(now time.Time) {
	if !s.topics.due(now) {
		return
	}
	ctx, cancel := context.WithTimeout(s.life, askTimeout)
	defer cancel()
	_ = s.beginnings.look(ctx) // Fetch says what is wrong with the brokers
}

// look asks where the partitions begin and end. It reports whether that was
// answered; Fetch returns the error of brokers that cannot be reached.
func (s *Source) look() bool {
	ctx, cancel := context.WithTimeout(s.life, askTimeout)
	defer cancel()
	if s.askEnds(ctx) != nil {
		return false
	}
	s.askStalled(ctx)
	s.askUnread(ctx)
	return true
}

// report tells Observe of all lanes, and for the last time of those lost.
func (s *Source) report() {
	if s.config.Observe == nil {
		return
	}
	if states := s.progress.states(); len(states) > 0 {
		s.config.Observe(states)
	}
}

// horizon is source.Info.Horizon: how long a record of the topics that are read
// now may stay in them, and of the topic for dead letters, from which records are
// brought back. The topic counts in which that is longest. The brokers remove a segment
// when its newest record is older than retention.ms, and a segment takes records for
// segment.ms; with producers' times (CreateTime) a record may be dated ahead by
// message.timestamp.after.max.ms, where that is bounded. Size limits, which remove
// earlier, do not count, and tiered storage changes nothing, since retention.ms is of
// both tiers. A topic that is only compacted, or never emptied, has no horizon
// (Unlimited).
//
// It fails where the brokers cannot be reached or do not tell the settings, as for a user
// without DESCRIBE_CONFIGS on the topics; after Close its error wraps semel.ErrClosed. It
// connects if that has not happened.
func (s *Source) horizon(ctx context.Context) (source.Horizon, error) {
	if open, err := s.brokers.open(s.startBackground); err != nil {
		return source.Horizon{}, err
	} else if !open {
		return source.Horizon{}, fmt.Errorf("kafka: the source is closed: %w", semel.ErrClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	names, err := s.topics.lasting(ctx)
	if err != nil {
		return source.Horizon{}, err
	}
	if len(names) == 0 {
		return source.Horizon{Why: "no topic matches " + s.config.TopicPattern}, nil
	}
	response, err := retention.Request(names).RequestWith(ctx, s.brokers.client())
	if err != nil {
		return source.Horizon{}, s.brokers.unreachable(err)
	}
	all, err := retention.Read(response, func(err error, topic string) error { return explain(err, topic, s.config.Group) })
	if err != nil {
		return source.Horizon{}, err
	}
	return retention.Longest(names, all)
}

// lasting are the topics whose records may be delivered: those that are read, or match
// now, and the one for dead letters.
func (t *topics) lasting(ctx context.Context) ([]string, error) {
	names := slices.Clone(t.named())
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
