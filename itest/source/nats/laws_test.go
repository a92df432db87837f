package nats_test

import (
	"context"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/nats"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sourcetest"
)

// broker gives the conformance suite a server with a stream and a consumer.
type broker struct {
	js     jetstream.JetStream
	config nats.Config
}

func (b *broker) Publish(_ int, m *semel.Message) error {
	out := &client.Msg{Subject: subject, Header: client.Header{}, Data: m.Body}
	for _, h := range m.Headers {
		out.Header[h.Name] = append(out.Header[h.Name], string(h.Value))
	}
	_, err := b.js.PublishMsg(context.Background(), out)
	return err
}

func (b *broker) End() error { return nil }

func (b *broker) Open() (source.Source, error) { return nats.New(b.config) }

func testLaws(t *testing.T, streamSettings func(*jetstream.StreamConfig), consumerSettings func(*jetstream.ConsumerConfig)) {
	sourcetest.Run(t, sourcetest.Harness{
		Start: func(t testing.TB) sourcetest.Broker {
			s := start(t)
			js := connect(t, s)
			stream(t, js, streamSettings)
			durable(t, js, consumerSettings)
			return &broker{js: js, config: config(s)}
		},
		// The suite sends keys, which NATS does not have; TestAMessageArrivesWithSubjectAndHeaders checks the rest.
		Can: sourcetest.Can{
			Lanes: 1, Live: true, Ordered: false, Reopens: true, Remembers: true, HandsBack: true, Delays: true, Counts: true,
			Pauses: true, Idles: true,
		},
		Patience: patience, Quiet: 300 * time.Millisecond,
	})
}

func TestNATSKeepsTheLawsOfASource(t *testing.T) {
	t.Parallel()
	testLaws(t, func(*jetstream.StreamConfig) {}, func(*jetstream.ConsumerConfig) {})
}

func TestNATSKeepsThemWithAWorkQueueAndAShortBackoff(t *testing.T) {
	t.Parallel()
	testLaws(t, func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, func(c *jetstream.ConsumerConfig) {
		c.BackOff, c.MaxDeliver = []time.Duration{time.Second, 3 * time.Second}, -1
	})
}

func TestAMessageArrivesWithSubjectAndHeaders(t *testing.T) {
	t.Parallel()
	s := start(t)
	js := connect(t, s)
	stream(t, js)
	durable(t, js)
	began := time.Now().Truncate(time.Second)
	sent := &client.Msg{Subject: subject, Data: []byte("body"), Header: client.Header{
		"Nats-Msg-Id": {"order-1"}, "ce-Type": {"order"}, "Note": {"first", "second ä"},
	}}
	_, err := js.PublishMsg(t.Context(), sent)
	must.OK(t, err)
	m := fetchOne(t, open(t, config(s))).Message
	if m.Topic != subject || string(m.Body) != "body" || m.Key != nil {
		t.Errorf("topic %q, body %q, key %q", m.Topic, m.Body, m.Key)
	}
	for name, want := range map[string]string{"Nats-Msg-Id": "order-1", "ce-type": "order", "Note": "first"} {
		if got, _ := m.Headers.Get(name); string(got) != want {
			t.Errorf("header %s is %q, not %q", name, got, want)
		}
	}
	if n := len(m.Headers); n != 4 {
		t.Errorf("%d headers instead of 4", n)
	}
	if o := m.Origin; o.Partition != -1 || o.Offset != 1 || o.BrokerID != "ORDERS/1" || o.Time().Before(began) {
		t.Errorf("origin %+v", o)
	}
}
