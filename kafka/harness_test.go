package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// newProducer returns a producer that writes to the partitions in its records.
func newProducer(t testing.TB, brokers []string) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableClientMetrics())
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// logSays fails if a log contains a text fewer than least times, or more than most times.
func logSays(t testing.TB, log fmt.Stringer, what string, least, most int) {
	t.Helper()
	if n := strings.Count(log.String(), what); n < least || n > most {
		t.Errorf("the log says %d times, not %d to %d, %q:\n%.3000s", n, least, most, what, log)
	}
}

// startBrokers starts brokers with topics of one partition. With the returned configuration, a source reads the topic
// "orders". The function withLetters adds "letters" as the topic for dead letters.
func startBrokers(t testing.TB, options ...kfake.Opt) (*kfake.Cluster, Config, *kgo.Client) {
	t.Helper()
	c := cluster(t, append([]kfake.Opt{kfake.SeedTopics(1, "orders", "letters")}, options...)...)
	config := Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing"}
	return c, config, newProducer(t, config.Brokers)
}

// setUp is like startBrokers, for tests that do not use the cluster.
func setUp(t testing.TB, options ...kfake.Opt) (Config, *kgo.Client) {
	t.Helper()
	_, config, p := startBrokers(t, options...)
	return config, p
}

// withLetters sets the topic for dead letters in a configuration.
func withLetters(c Config) Config {
	c.DeadLetters = "letters"
	return quiet(c)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// expectContains fails unless a text contains all given parts.
func expectContains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q: %.3000s", part, text)
		}
	}
}

// broker implements the interface through which the conformance suite uses a cluster.
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

// Dead reads the dead letters, and waits until at least one dead letter exists.
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

// logTo returns a logger that writes text to w.
func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// BenchmarkFetchAndSettle reads and acks records of 500 bytes with five headers from a broker in this process. Each
// Fetch returns 500 records.
func BenchmarkFetchAndSettle(b *testing.B) {
	c := cluster(b, kfake.SeedTopics(6, "orders"))
	p := newProducer(b, c.ListenAddrs())
	const most = 200_000
	value := make([]byte, 500)
	headers := []kgo.RecordHeader{{Key: "ce_id", Value: []byte("0190b5c4-7a1e-7cc0-9f3a-2b1c5d6e7f80")}, {Key: "ce_source", Value: []byte("/shop")}, {Key: "ce_type", Value: []byte("paid")}, {Key: "ce_time", Value: []byte("2026-01-02T03:04:05Z")}, {Key: "content-type", Value: []byte("application/json")}}
	for i := range min(b.N, most) {
		p.Produce(b.Context(), &kgo.Record{Topic: "orders", Partition: int32(i % 6), Value: value, Headers: headers}, nil)
	}
	must(b, p.Flush(b.Context()))
	b.ReportAllocs()
	b.ResetTimer()
	for read := 0; read < b.N; {
		r, err := New(quiet(Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing"}))
		must(b, err)
		for n := 0; n < min(b.N, most) && read < b.N; {
			got, err := r.Fetch(b.Context(), source.Bound{Messages: 500, Bytes: 64 << 20})
			must(b, err)
			if left, err := r.Settle(b.Context(), settlements(semel.Ack, got)); err != nil || len(left) > 0 {
				b.Fatal(left, err)
			}
			n, read = n+len(got), read+len(got)
		}
		_ = r.Close(b.Context())
	}
}
