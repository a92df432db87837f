package kafka

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sourcetest"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// cluster starts brokers in this process.
func cluster(t testing.TB, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// newProducer writes to partitions that the caller names.
func newProducer(t testing.TB, brokers []string) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableClientMetrics())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// broker is the suite's view of a cluster.
type broker struct {
	producer *kgo.Client
	config   Config
}

func (b *broker) Publish(lane int, m *semel.Message) error {
	r := &kgo.Record{Topic: b.config.Topics[0], Partition: int32(lane), Key: m.Key, Value: m.Body}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
	}
	return b.producer.ProduceSync(context.Background(), r).FirstErr()
}

func (b *broker) End() error { return nil }

func (b *broker) Open() (source.Source, error) { return New(b.config) }

// Dead reads the dead letters, of which there is one at least.
func (b *broker) Dead() ([]*semel.Message, error) {
	s, err := New(quiet(Config{Brokers: b.config.Brokers, Topics: []string{b.config.DeadLetters}, Group: "audit"}))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := s.Fetch(ctx, wide)
	var all []*semel.Message
	for _, d := range got {
		all = append(all, d.Message)
	}
	return all, errors.Join(err, s.Close(ctx))
}

func TestKafkaKeepsTheLawsOfASource(t *testing.T) {
	sourcetest.Run(t, sourcetest.Harness{
		Start: func(t testing.TB) sourcetest.Broker {
			c := cluster(t, kfake.SeedTopics(3, "orders"), kfake.SeedTopics(1, "letters"))
			return &broker{producer: newProducer(t, c.ListenAddrs()), config: quiet(Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", DeadLetters: "letters"})}
		},
		Can: sourcetest.Can{
			Lanes: 3, Live: true, Whole: true, Ordered: true, Reopens: true, Remembers: true,
			HandsBack: true, Delays: true, Pauses: true, DeadLetters: true, Idles: true, Dated: true,
		},
		Patience: 30 * time.Second, Quiet: 300 * time.Millisecond,
	})
}

func quiet(c Config) Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// logTo writes a log's lines to a builder that one goroutine reads at the end.
func logTo(b *strings.Builder) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, nil))
}
