package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topics are what is read, and as which topics: those of Config.Topics, or those
// that match the pattern, see pattern.go.
type topics struct {
	config  *Config
	brokers *brokers
	member  *member
	faults  *faultList
	pattern *regexp.Regexp // nil with Config.Topics

	// mu guards the rest. Who holds it waits for nothing; under it only the locks
	// of member, faults and gate are taken.
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
	request := kmsg.NewPtrMetadataRequest()
	for _, topic := range named {
		asked := kmsg.NewMetadataRequestTopic()
		asked.Topic = kmsg.StringPtr(topic)
		request.Topics = append(request.Topics, asked)
	}
	response, err := request.RequestWith(ctx, t.brokers.client())
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
