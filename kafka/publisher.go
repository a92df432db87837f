package kafka

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/kafka/internal/hook"
	"github.com/semel-go/semel/kafka/internal/producer"
	"github.com/twmb/franz-go/pkg/kgo"
)

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
	sendings   sendings

	mu     sync.Mutex         // guards the rest; nothing is waited for under it
	writer *producer.Producer // nil before the first record
	closed bool
}

// NewPublisher makes a publisher; it connects to nobody yet. Close it when the consumers
// that use it have ended.
func NewPublisher(c PublisherConfig) (*Publisher, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	p := &Publisher{config: c, sendings: sendings{all: map[publication]*sending{}}}
	p.life, p.end = context.WithCancel(context.Background())
	// Encryption is within what is counted, so it is no matter of the client's.
	p.brokers.config = &Config{Brokers: c.Brokers, SASL: c.SASL, ClientID: c.ClientID, Logger: c.Logger}
	p.dialWith((&net.Dialer{Timeout: askTimeout}).DialContext)
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
	which := publication{m.Identity, record.Topic}
	for {
		s, err := p.send(which, record)
		if err != nil {
			return semel.Retry(err)
		}
		select {
		case <-s.done:
			p.sendings.forget(which, s)
			if !s.unsent() || ctx.Err() != nil {
				return p.judge(ctx, s, record.Topic)
			}
			// It waited beside one that nobody wanted any more, and went with it.
		case <-ctx.Done():
			s.cancel()
			return p.unconfirmed(ctx, s, record.Topic)
		}
	}
}

// send writes a record, or finds the one of the same publication that is under way.
func (p *Publisher) send(which publication, record *kgo.Record) (*sending, error) {
	writer, err := p.open()
	if err != nil {
		return nil, err
	}
	s, begun := p.sendings.begin(p.life, which, p.produces.Begun(), time.Now())
	if begun {
		writer.Write(&producer.Record{Ctx: s.ctx, Record: producer.Unsent(record), Answer: s.answer})
	}
	return s, nil
}

// open returns who writes.
func (p *Publisher) open() (*producer.Producer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errPublisherClosed
	}
	if p.writer != nil {
		return p.writer, nil
	}
	// The client waits for no further record: a batch is what came while the one before
	// it was on its way.
	common := func() []kgo.Opt {
		return append(p.brokers.common(), kgo.ProducerLinger(0), kgo.WithHooks(&p.brokers.lastDial, &p.brokers.lastAnswer))
	}
	var err error
	p.writer, err = producer.New(common, producer.UsualBatch, p.replace)
	return p.writer, err
}

// replace lets the next record have another writer than this one.
func (p *Publisher) replace(w *producer.Producer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writer == w && !p.closed {
		p.writer = nil
		p.background.Go(w.Close)
	}
}

// Close ends the publisher and its connections. What is on its way then has an unknown
// outcome; calls of Publish that wait for it end. A second call does nothing.
func (p *Publisher) Close() {
	p.mu.Lock()
	writer, closed := p.writer, p.closed
	p.closed = true
	p.mu.Unlock()
	if closed {
		return
	}
	p.end()
	if writer != nil {
		writer.Close()
	}
	p.background.Wait()
}
