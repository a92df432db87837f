package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/kafka/internal/hook"
	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/semel-go/semel/kafka/internal/producer"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
)

// PublisherConfig says where messages are published. The zero value of a field is its
// default; NewPublisher reports every fault at once.
type PublisherConfig struct {
	// Brokers are the first brokers to ask, host:port. Required.
	Brokers []string
	// Topic is where messages go, unless their TopicHeader says otherwise. It, or
	// TopicHeader, is required. It must exist, as every topic: none is made.
	Topic string
	// TopicHeader, when set, is the header by which a message names its topic. One that
	// Topics does not hold is refused: whoever writes a message could write anywhere
	// with it. A message without the header goes to Topic; where that is empty it is
	// refused.
	TopicHeader string
	// Topics are those that a TopicHeader may name. Required with it.
	Topics []string
	// Timeout is how long a call of Publish waits for the brokers; default 10 s. Let it
	// be shorter than the lease of the consumer.
	Timeout time.Duration
	// TLS, when set, is used for every connection.
	TLS *tls.Config
	// SASL, when set, authenticates: github.com/twmb/franz-go/pkg/sasl has plain, scram
	// and oauth.
	SASL []sasl.Mechanism
	// ClientID is what brokers log and limit by; default "semel".
	ClientID string
	// Logger gets the client's warnings; default slog.Default().
	Logger *slog.Logger
}

// defaultPublishTimeout is how long a call of Publish waits unless it is told.
const defaultPublishTimeout = 10 * time.Second

func (c PublisherConfig) withDefaults() PublisherConfig {
	setDefault(&c.Timeout, defaultPublishTimeout)
	setDefault(&c.ClientID, defaultClientID)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate reports every fault of a configuration with its defaults.
func (c PublisherConfig) validate() error {
	var p problems
	p.brokers(c.Brokers)
	p.when(c.Topic == "" && c.TopicHeader == "", "Topic and TopicHeader are empty; name the topic that messages are published to")
	p.when(c.TopicHeader != "" && len(c.Topics) == 0, "TopicHeader is set and Topics is empty; name the topics that a message may be published to")
	p.when(c.Topic != "" && c.TopicHeader == "" && len(c.Topics) > 0, "Topics are those that TopicHeader may name, and it is empty; set it, or Topic alone")
	for _, topic := range c.all() {
		p.topic(topic, "")
	}
	p.when(c.Timeout < 0, "Timeout is %v; use more than 0, or 0 for %v", c.Timeout, defaultPublishTimeout)
	return errors.Join(p...)
}

// all are the topics that can be published to.
func (c PublisherConfig) all() []string {
	all := slices.Clone(c.Topics)
	if c.Topic != "" && !slices.Contains(all, c.Topic) {
		all = append(all, c.Topic)
	}
	return all
}

// Publisher is a handler that publishes messages to Kafka; see the package's text.
// Its calls may run beside one another, and share batches.
type Publisher struct {
	config  PublisherConfig
	brokers brokers
	// produces is what was sent to the brokers.
	produces hook.Produces
	// life ends when nothing is written any more.
	life       context.Context
	end        context.CancelFunc
	background worker.Group
	sendings   *producer.Sendings
	current    *producer.Current
}

// NewPublisher makes a publisher; it connects to nobody yet. Close it when the consumers
// that use it have ended.
func NewPublisher(c PublisherConfig) (*Publisher, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	p := &Publisher{config: c, sendings: producer.NewSendings()}
	p.life, p.end = context.WithCancel(context.Background())
	// Encryption is within what is counted, so it is no matter of the client's.
	p.brokers.config = &Config{Brokers: c.Brokers, SASL: c.SASL, ClientID: c.ClientID, Logger: c.Logger}
	p.dialWith((&net.Dialer{Timeout: askTimeout}).DialContext)
	// The client waits for no further record: a batch is what came while the one before
	// it was on its way.
	common := func() []kgo.Opt {
		return append(p.brokers.common(), kgo.ProducerLinger(0), kgo.WithHooks(&p.brokers.lastDial, &p.brokers.lastAnswer))
	}
	p.current = producer.NewCurrent(&p.background, func(spent func(*producer.Producer)) (*producer.Producer, error) {
		return producer.New(common, producer.UsualBatch, spent)
	})
	return p, nil
}

// dialWith lets connections be made by another dialer.
func (p *Publisher) dialWith(dial dialer) {
	p.brokers.dial = p.produces.Dial(hook.Dialer(dial), p.config.TLS)
}

// errUnconfirmed is the cause of a call that was ended because its time was over.
var errUnconfirmed = errors.New("the time of the call is over")

// Publish writes m to its topic and returns when all replicas have it. The error, if any,
// says what becomes of the message: see semel.Retry, semel.Unknown and semel.Permanent.
// After all but Unknown nothing was sent, or the brokers answered that it is not written.
//
// The record of a call that ended too early stays on its way; the next call for the same
// message in this process waits for it, and writes no second one.
func (p *Publisher) Publish(ctx context.Context, m *semel.Message) error {
	record, err := p.record(m)
	if err != nil {
		return semel.Permanent(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.Timeout, errUnconfirmed)
	defer cancel()
	which := producer.Publication{Identity: m.Identity, Topic: record.Topic}
	for {
		s, err := p.send(which, record)
		if err != nil {
			return semel.Retry(err)
		}
		select {
		case <-s.Done:
			p.sendings.Forget(which, s)
			if !s.Unsent() || ctx.Err() != nil {
				return p.judge(ctx, s, record.Topic)
			}
			// It waited beside one that nobody wanted any more, and went with it.
		case <-ctx.Done():
			s.Cancel()
			return p.unconfirmed(ctx, s, record.Topic)
		}
	}
}

// send writes a record, or finds the one of the same publication that is under way.
func (p *Publisher) send(which producer.Publication, record *kgo.Record) (*producer.Sending, error) {
	writer, err := p.open()
	if err != nil {
		return nil, err
	}
	s, begun := p.sendings.Begin(p.life, which, p.produces.Begun(), time.Now())
	if begun {
		writer.Write(&producer.Record{Ctx: s.Ctx, Record: producer.Unsent(record), Answer: s.Answer})
	}
	return s, nil
}

// open returns who writes.
func (p *Publisher) open() (*producer.Producer, error) {
	writer, err := p.current.Open()
	if errors.Is(err, kgo.ErrClientClosed) {
		return nil, errPublisherClosed
	}
	return writer, err
}

// Close ends the publisher and its connections. What is on its way then has an unknown
// outcome; calls of Publish that wait for it end. A second call does nothing.
func (p *Publisher) Close() {
	if writer, first := p.current.Shut(); first {
		p.end()
		writer.Close()
		p.background.Wait()
	}
}

// Check asks the brokers for the topics, so that a misspelt one is told once, and not by
// each message that is set aside for it. Its error names the topics that do not exist or may
// not be used, or says that the user is refused. Where no broker answers it is nil: they may
// be back when there is something to publish.
func (p *Publisher) Check(ctx context.Context) error {
	return untilKnown(ctx, p.check(ctx), p.check)
}

func (p *Publisher) check(ctx context.Context) error {
	writer, err := p.open()
	if err != nil {
		return err
	}
	response, err := metadataOf(p.config.all()...).RequestWith(ctx, writer.Batches)
	if err != nil {
		var answer *kerr.Error
		if err = p.brokers.unreachable(err); errors.As(err, &answer) {
			return err
		}
		return nil
	}
	var all error
	for _, t := range response.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); refused(err) != "" && t.Topic != nil {
			all = errors.Join(all, fmt.Errorf("kafka: topic %s: %s: %w", *t.Topic, refused(err), err))
		}
	}
	return all
}

// record is that of m.
func (p *Publisher) record(m *semel.Message) (*kgo.Record, error) {
	if m.Identity.ID == "" {
		return nil, errors.New("kafka: the message has no Identity, and its record could not be recognised; publish it from a handler, or make it with NewMessage")
	}
	topic, err := p.topicOf(m)
	if err != nil {
		return nil, err
	}
	return message.Record(m, topic), nil
}

func (p *Publisher) topicOf(m *semel.Message) (string, error) {
	c := &p.config
	if c.TopicHeader == "" {
		return c.Topic, nil
	}
	switch named, found := m.Headers.Get(c.TopicHeader); {
	case found && slices.Contains(c.Topics, string(named)):
		return string(named), nil
	case found:
		return "", fmt.Errorf("kafka: the header %s names the topic %s, which is none of those that a message may name", c.TopicHeader, legible.Printable(string(named[:min(len(named), topicName)])))
	case c.Topic == "":
		return "", fmt.Errorf("kafka: the message has no header %s, and no topic is set for such", c.TopicHeader)
	}
	return c.Topic, nil
}

var errPublisherClosed = fmt.Errorf("kafka: nothing was sent: the publisher is closed: %w", semel.ErrClosed)

// unpublished is the error of a call whose record is not known to be written.
type unpublished struct {
	text string
	err  error
}

func (e *unpublished) Error() string { return e.text }

func (e *unpublished) Unwrap() error { return e.err }

// judge says what the end of a sending means for its message.
func (p *Publisher) judge(ctx context.Context, s *producer.Sending, topic string) error {
	switch refusal := refused(s.Err); {
	case s.Err == nil:
		return nil
	case refusal != "":
		return semel.Permanent(&unpublished{fmt.Sprintf("kafka: nothing was written to topic %s: %s", topic, refusal), s.Err})
	case errors.Is(s.Err, kerr.UnknownTopicID):
		return semel.Retry(&unpublished{fmt.Sprintf("kafka: nothing was written to topic %s: it was deleted, or deleted and created anew", topic), s.Err})
	}
	return p.unconfirmed(ctx, s, topic)
}

// refused says why brokers rejected a record and what to do, if another try cannot help; it is
// empty for any other outcome.
func refused(err error) string {
	switch {
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return "the record is larger than the topic takes; raise the topic's max.message.bytes"
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return "the topic does not exist, or this user may not see it; create it or correct its name"
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		// The latter is said of who may write to no topic at all.
		return "this user may not write to the topic; allow it WRITE and DESCRIBE"
	case errors.Is(err, kerr.InvalidTopicException):
		return "the brokers do not allow to write to this topic"
	case errors.Is(err, kerr.InvalidRecord):
		return "the brokers take no such record there, such as one without a key where the topic is compacted"
	case errors.Is(err, kerr.InvalidTimestamp):
		return "the topic does not take records of this host's time; set its clock, or the topic's message.timestamp.before.max.ms and after.max.ms"
	}
	return ""
}

// unconfirmed returns the error of a record that no broker has confirmed.
func (p *Publisher) unconfirmed(ctx context.Context, s *producer.Sending, topic string) error {
	err := context.Cause(ctx)
	// A sending that was cancelled with its call is reported as an ended call, whichever is seen first.
	byItself := s.Ended() && (err == nil || !errors.Is(s.Err, context.Canceled))
	if byItself {
		err = s.Err
	}
	why := "the brokers have not confirmed it: " + legible.Printable(fmt.Sprint(err))
	switch {
	case s.Ended() && p.life.Err() != nil:
		why = "the publisher was closed"
	case byItself:
	case errors.Is(err, errUnconfirmed):
		why = "the brokers have not confirmed it within " + legible.Span(p.config.Timeout)
	case err != nil:
		why = "the call was ended here"
	}
	if s.Ended() && s.Unsent() || p.produces.Begun() == s.Before {
		return semel.Retry(&unpublished{fmt.Sprintf("kafka: nothing was sent to topic %s: %s%s", topic, why, p.away()), err})
	}
	return semel.Unknown(&unpublished{fmt.Sprintf("kafka: the outcome of publishing to topic %s is not known: %s%s; another attempt publishes it with the same id", topic, why, p.away()), err})
}

// away says why no broker could be connected to, if that is so.
func (p *Publisher) away() string {
	if err := p.brokers.lastDial.Err(); err != nil {
		return " (" + legible.Printable(err.Error()) + ")"
	}
	return ""
}
