// Package kafka_test tests the Kafka source with a real broker.
package kafka_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sourcetest"
	"github.com/twmb/franz-go/pkg/kgo"
)

// client returns a client, which is closed at the end of the test.
func client(t testing.TB, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append(append(services.Patient(),
		kgo.SeedBrokers(services.Kafka(t)...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableClientMetrics(),
	), options...)...)
	must.OK(t, err)
	t.Cleanup(c.Close)
	return c
}

// group returns a group name that no other test uses.
func group() string { return "semel-" + strings.ToLower(rand.Text()) }

// broker gives the conformance suite direct access to a topic and a group.
type broker struct {
	producer *kgo.Client
	config   kafka.Config
}

func (b *broker) Publish(lane int, m *semel.Message) error {
	r := &kgo.Record{Topic: b.config.Topics[0], Partition: int32(lane), Key: m.Key, Value: m.Body}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
	}
	return b.producer.ProduceSync(context.Background(), r).FirstErr()
}

func (b *broker) End() error { return nil }

func (b *broker) Open() (source.Source, error) { return kafka.New(b.config) }

// Dead returns the dead letters. Dead waits until the topic has at least one dead letter.
func (b *broker) Dead() ([]*semel.Message, error) {
	settings := b.config
	settings.Topics, settings.DeadLetters, settings.Group = []string{b.config.DeadLetters}, "", group()
	s, err := kafka.New(settings)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := s.Fetch(ctx, source.Bound{Messages: 100, Bytes: 1 << 20})
	var all []*semel.Message
	for _, d := range got {
		all = append(all, d.Message)
	}
	return all, errors.Join(err, s.Close(ctx))
}

func config(t testing.TB, topics ...string) kafka.Config {
	t.Helper()
	return kafka.Config{Brokers: services.Kafka(t), Topics: topics, Group: group(), Logger: slog.New(slog.DiscardHandler)}
}

func testLaws(t *testing.T, change func(*kafka.Config)) {
	c := client(t)
	sourcetest.Run(t, sourcetest.Harness{
		Start: func(t testing.TB) sourcetest.Broker {
			b := &broker{producer: c, config: config(t, services.Topic(t, services.Kafka(t), 3))}
			b.config.DeadLetters = services.Topic(t, services.Kafka(t), 1)
			change(&b.config)
			return b
		},
		Can: sourcetest.Can{
			Lanes: 3, Live: true, Whole: true, Ordered: true, Reopens: true, Remembers: true,
			HandsBack: true, Delays: true, Pauses: true, DeadLetters: true, Idles: true, Dated: true,
		},
		Patience: 30 * time.Second, Quiet: 300 * time.Millisecond,
	})
}

func TestKafkaKeepsTheLawsOfASource(t *testing.T) {
	t.Parallel()
	testLaws(t, func(*kafka.Config) {})
}

func TestKafkaKeepsThemInAGroupBalancedByTheBrokers(t *testing.T) {
	t.Parallel()
	testLaws(t, func(c *kafka.Config) { c.NextGen = true })
}
