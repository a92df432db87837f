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

// PublisherConfig contains the settings with which messages are published. The zero value of a field is its default.
// NewPublisher reports all faults of a PublisherConfig at once.
type PublisherConfig struct {
	// Brokers are the brokers to contact first, as host:port. Required.
	Brokers []string
	// Topic is the topic for messages without TopicHeader. Topic or TopicHeader is required. All topics must exist,
	// because the publisher creates no topics.
	Topic string
	// TopicHeader, if set, is the name of the header that contains a message's topic. A topic that is not in Topics is
	// rejected, so that the author of a message cannot choose any topic. A message without the header goes to Topic; if
	// Topic is empty, the message is rejected.
	TopicHeader string
	// Topics are the topics that the header may name. Required with TopicHeader.
	Topics []string
	// Timeout is the time for which a call of Publish waits for the brokers; default 10 s. Timeout should be shorter
	// than the consumer's lease.
	Timeout time.Duration
	// TLS, if set, is used for every connection.
	TLS *tls.Config
	// SASL, if set, authenticates; package github.com/twmb/franz-go/pkg/sasl has the mechanisms plain, scram and oauth.
	SASL []sasl.Mechanism
	// ClientID is the name that brokers use in logs and quotas; default "semel".
	ClientID string
	// Logger receives the client's warnings; default slog.Default().
	Logger *slog.Logger
}

// The default of PublisherConfig.Timeout.
const defaultPublishTimeout = 10 * time.Second

func (c PublisherConfig) withDefaults() PublisherConfig {
	setDefault(&c.Timeout, defaultPublishTimeout)
	setDefault(&c.ClientID, defaultClientID)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// validate returns all faults of a configuration. The caller must have set the defaults.
func (c PublisherConfig) validate() error {
	var p problems
	p.brokers(c.Brokers)
	p.addIf(c.Topic == "" && c.TopicHeader == "", "Topic and TopicHeader are empty; name the topic that messages are published to")
	p.addIf(c.TopicHeader != "" && len(c.Topics) == 0, "TopicHeader is set and Topics is empty; name the topics that a message may be published to")
	p.addIf(c.Topic != "" && c.TopicHeader == "" && len(c.Topics) > 0, "Topics are the topics that TopicHeader may name, and TopicHeader is empty; set TopicHeader, or only Topic")
	for _, topic := range c.allTopics() {
		p.topic(topic, "")
	}
	p.addIf(c.Timeout < 0, "Timeout is %v; use more than 0, or 0 for %v", c.Timeout, defaultPublishTimeout)
	return errors.Join(p...)
}

// allTopics returns the topics to which messages may be published.
func (c PublisherConfig) allTopics() []string {
	all := slices.Clone(c.Topics)
	if c.Topic != "" && !slices.Contains(all, c.Topic) {
		all = append(all, c.Topic)
	}
	return all
}

// Publisher is a handler that publishes messages to Kafka; see the package documentation. Publisher can be called
// concurrently; concurrent calls share batches.
type Publisher struct {
	config  PublisherConfig
	brokers brokers
	// A counter of the write requests to the brokers.
	produces hook.Produces
	// The context life ends when the publisher may write no further records.
	life       context.Context
	end        context.CancelFunc
	background worker.Group
	sendings   *producer.Sendings
	current    *producer.Current
}

// NewPublisher creates a publisher, which connects with the first message. Close the publisher after the
// consumers that use it have ended.
func NewPublisher(c PublisherConfig) (*Publisher, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	p := &Publisher{config: c, sendings: producer.NewSendings()}
	p.life, p.end = context.WithCancel(context.Background())
	// The client gets no TLS configuration, because the dialer itself encrypts with TLS, and counts the requests before
	// encryption.
	p.brokers.config = &Config{Brokers: c.Brokers, SASL: c.SASL, ClientID: c.ClientID, Logger: c.Logger}
	p.dialWith((&net.Dialer{Timeout: askTimeout}).DialContext)
	// The client does not wait for further records. A batch contains the records that arrived while the previous batch
	// was in progress.
	common := func() []kgo.Opt {
		return append(p.brokers.commonOptions(), kgo.ProducerLinger(0), kgo.WithHooks(&p.brokers.lastDial, &p.brokers.lastAnswer))
	}
	p.current = producer.NewCurrent(&p.background, func(spent func(*producer.Producer)) (*producer.Producer, error) {
		return producer.New(common, producer.UsualBatch, spent)
	})
	return p, nil
}

// dialWith sets the function that connects to brokers.
func (p *Publisher) dialWith(dial dialer) {
	p.brokers.dial = p.produces.Dial(hook.Dialer(dial), p.config.TLS)
}

// errUnconfirmed is the cause of the context of a call that has reached PublisherConfig.Timeout.
var errUnconfirmed = errors.New("the call has reached its timeout")

// Publish writes m to its topic and returns nil when all replicas have the record. The kind of an error determines what
// happens to the message: see semel.Retry, semel.Unknown and semel.Permanent. With every error except Unknown, the
// record was not written.
//
// If a call reaches its timeout, its record stays in progress. The next call for the same message in this process waits
// for the record in progress, and writes no second record.
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
			// Another call for the same message was cancelled, together with the record that both calls share. The next
			// iteration of the loop sends the record again.
		case <-ctx.Done():
			s.Cancel()
			return p.unconfirmedError(ctx, s, record.Topic)
		}
	}
}

// send writes a record. If a record of the same publication is in progress, send returns the sending in progress and
// writes nothing.
func (p *Publisher) send(which producer.Publication, record *kgo.Record) (*producer.Sending, error) {
	writer, err := p.openProducer()
	if err != nil {
		return nil, err
	}
	s, begun := p.sendings.Begin(p.life, which, p.produces.Begun(), time.Now())
	if begun {
		writer.Write(&producer.Record{Ctx: s.Ctx, Record: producer.Unsent(record), Answer: s.Answer})
	}
	return s, nil
}

// openProducer returns the current producer.
func (p *Publisher) openProducer() (*producer.Producer, error) {
	writer, err := p.current.Open()
	if errors.Is(err, kgo.ErrClientClosed) {
		return nil, errPublisherClosed
	}
	return writer, err
}

// Close closes the publisher and its connections. Calls of Publish that wait for records in progress return an error
// made by semel.Unknown. A second call does nothing.
func (p *Publisher) Close() {
	if writer, first := p.current.Shut(); first {
		p.end()
		writer.Close()
		p.background.Wait()
	}
}

// Check requests the topics from the brokers. So an operator learns of a misspelt topic from one error, and not from
// many parked messages. The error names the topics that do not exist or to which the user may not write, or says that
// the brokers refuse the user. If no broker answers, Check returns nil, because the brokers may be reachable when the
// first message is published.
func (p *Publisher) Check(ctx context.Context) error {
	return untilKnown(ctx, p.check(ctx), p.check)
}

func (p *Publisher) check(ctx context.Context) error {
	writer, err := p.openProducer()
	if err != nil {
		return err
	}
	response, err := metadataOf(p.config.allTopics()...).RequestWith(ctx, writer.Batches)
	if err != nil {
		var answer *kerr.Error
		if err = p.brokers.unreachableError(err); errors.As(err, &answer) {
			return err
		}
		return nil
	}
	var all error
	for _, t := range response.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); rejectionReason(err) != "" && t.Topic != nil {
			all = errors.Join(all, fmt.Errorf("kafka: topic %s: %s: %w", *t.Topic, rejectionReason(err), err))
		}
	}
	return all
}

// record returns the record that publishes m.
func (p *Publisher) record(m *semel.Message) (*kgo.Record, error) {
	if m.Identity.ID == "" {
		return nil, errors.New("kafka: the message has no Identity, so readers could not recognise copies of its record; publish it from a handler, or make it with NewMessage")
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
		return "", fmt.Errorf("kafka: the header %s names the topic %s, which is not in Topics", c.TopicHeader, legible.Printable(string(named[:min(len(named), topicName)])))
	case c.Topic == "":
		return "", fmt.Errorf("kafka: the message has no header %s, and Topic is empty", c.TopicHeader)
	}
	return c.Topic, nil
}

var errPublisherClosed = fmt.Errorf("kafka: nothing was sent: the publisher is closed: %w", semel.ErrClosed)

// publishError is the error of a call whose record was not written, or whose outcome is unknown.
type publishError struct {
	text string
	err  error
}

func (e *publishError) Error() string { return e.text }

func (e *publishError) Unwrap() error { return e.err }

// judge returns the error of Publish for the outcome of a sending.
func (p *Publisher) judge(ctx context.Context, s *producer.Sending, topic string) error {
	switch refusal := rejectionReason(s.Err); {
	case s.Err == nil:
		return nil
	case refusal != "":
		return semel.Permanent(&publishError{fmt.Sprintf("kafka: nothing was written to topic %s: %s", topic, refusal), s.Err})
	case errors.Is(s.Err, kerr.UnknownTopicID):
		return semel.Retry(&publishError{fmt.Sprintf("kafka: nothing was written to topic %s: it was deleted, or deleted and created again", topic), s.Err})
	}
	return p.unconfirmedError(ctx, s, topic)
}

// rejectionReason returns a text for operators: why brokers rejected a record, and what to do. The result is empty
// if another attempt may succeed.
func rejectionReason(err error) string {
	switch {
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return "the record is larger than the topic accepts; raise the topic's max.message.bytes"
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return "the topic does not exist, or this user may not see it; create it or correct its name"
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		// The brokers answer ClusterAuthorizationFailed if the user may write to no topic at all.
		return "this user may not write to the topic; allow it WRITE and DESCRIBE"
	case errors.Is(err, kerr.InvalidTopicException):
		return "the brokers do not allow writing to this topic"
	case errors.Is(err, kerr.InvalidRecord):
		return "the topic does not accept this record, for example a record without a key in a compacted topic"
	case errors.Is(err, kerr.InvalidTimestamp):
		return "the topic does not accept this host's time; set its clock, or the topic's message.timestamp.before.max.ms and after.max.ms"
	}
	return ""
}

// unconfirmedError returns the error for a record that no broker has confirmed.
func (p *Publisher) unconfirmedError(ctx context.Context, s *producer.Sending, topic string) error {
	err := context.Cause(ctx)
	// If the call and its record were cancelled together, the error says that the call ended.
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
		why = "the caller ended the call"
	}
	if s.Ended() && s.Unsent() || p.produces.Begun() == s.Before {
		return semel.Retry(&publishError{fmt.Sprintf("kafka: nothing was sent to topic %s: %s%s", topic, why, p.connectionErrorText()), err})
	}
	return semel.Unknown(&publishError{fmt.Sprintf("kafka: the outcome of publishing to topic %s is not known: %s%s; another attempt publishes it with the same id", topic, why, p.connectionErrorText()), err})
}

// connectionErrorText returns the error of the last connection attempt as text; empty if the attempt succeeded.
func (p *Publisher) connectionErrorText() string {
	if err := p.brokers.lastDial.Err(); err != nil {
		return " (" + legible.Printable(err.Error()) + ")"
	}
	return ""
}
