// Package traps_test tests consumers with a real broker against faults that other systems have had with
// Kafka.
package traps_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/memstore"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 3 * time.Minute

// world is what a test uses: a topic on the shared broker, with a group of its own, and a store.
type world struct {
	t        testing.TB
	brokers  []string
	topic    string
	group    string
	store    *memstore.Store
	producer *kgo.Client
	admin    *kadm.Client
}

func newWorld(t testing.TB, partitions int, settings ...string) *world {
	t.Helper()
	brokers := services.Kafka(t)
	w := &world{
		t: t, brokers: brokers, topic: services.Topic(t, brokers, partitions, settings...),
		group: "semel-" + strings.ToLower(rand.Text()), store: memstore.New(),
	}
	w.producer = w.client(kgo.ProducerBatchMaxBytes(32 << 20))
	w.admin = kadm.NewClient(w.producer)
	return w
}

func (w *world) client(options ...kgo.Opt) *kgo.Client {
	w.t.Helper()
	c, err := kgo.NewClient(append(append(services.Patient(),
		kgo.SeedBrokers(w.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableClientMetrics(),
	), options...)...)
	must.OK(w.t, err)
	w.t.Cleanup(c.Close)
	return c
}

func (w *world) order(partition int32, id string) *kgo.Record {
	return &kgo.Record{
		Topic: w.topic, Partition: partition, Key: []byte("key"), Value: []byte("order " + id),
		Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte(id)}, {Key: "ce_source", Value: []byte("shop")},
			{Key: "ce_specversion", Value: []byte("1.0")}, {Key: "ce_type", Value: []byte("order")}},
	}
}

func (w *world) publish(partition int32, ids ...string) {
	w.t.Helper()
	var all []*kgo.Record
	for _, id := range ids {
		all = append(all, w.order(partition, id))
	}
	w.produce(all...)
}

func (w *world) produce(records ...*kgo.Record) {
	w.t.Helper()
	must.OK(w.t, w.producer.ProduceSync(context.Background(), records...).FirstErr())
}

func makeIDs(prefix string, first, last int) []string {
	var all []string
	for n := first; n <= last; n++ {
		all = append(all, fmt.Sprintf("%s%04d", prefix, n))
	}
	return all
}

// process is one running process of the consumer.
type process struct {
	source   *kafka.Source
	consumer *consumer.Consumer[*memstore.Tx]
	stop     context.CancelFunc
	ended    chan error
}

type handler func(context.Context, *memstore.Tx, *semel.Message) error

func count(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
	return tx.Add("effect "+m.Identity.ID, 1)
}

func (w *world) start(handle handler, change func(*kafka.Config), policy ...func(*consumer.Config)) *process {
	w.t.Helper()
	c := kafka.Config{Brokers: w.brokers, Topics: []string{w.topic}, Group: w.group, Logger: slog.New(slog.DiscardHandler), SessionTimeout: 6 * time.Second}
	if change != nil {
		change(&c)
	}
	source := must.Get(kafka.New(c))(w.t)
	config := consumer.Config{Name: "billing", Source: source, Identity: identity.CloudEvents(), Logger: c.Logger}
	for _, more := range policy {
		more(&config)
	}
	running := must.Get(consumer.New(w.store, handle, config, faults.Plan{Seed: 1}))(w.t)
	ctx, stop := context.WithCancel(context.Background())
	p := &process{source: source, consumer: running, stop: stop, ended: make(chan error, 1)}
	go func() { p.ended <- running.Run(ctx) }()
	w.t.Cleanup(func() { _ = p.leave() })
	return p
}

func (p *process) leave() error {
	p.stop()
	err := <-p.ended
	p.ended <- err
	return err
}

func (w *world) effect(id string) string { return string(w.store.Get("effect " + id)) }

func (w *world) expectOnce(ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		if n := w.effect(id); n != "1" {
			w.t.Errorf("%s took effect %q times", id, n)
		}
	}
}

// waitCommitted waits until the group has committed the last offset of each partition.
func (w *world) waitCommitted() {
	w.t.Helper()
	w.waitUntil("the group's offsets are at the ends of all partitions", func() bool {
		ends, err := w.admin.ListEndOffsets(context.Background(), w.topic)
		if err != nil || ends.Error() != nil {
			return false
		}
		offsets, err := w.admin.FetchOffsets(context.Background(), w.group)
		if err != nil {
			return false
		}
		for partition, end := range ends[w.topic] {
			if at, known := offsets.Lookup(w.topic, partition); end.Offset > 0 && (!known || at.At != end.Offset) {
				return false
			}
		}
		return true
	})
}

func (w *world) waitUntil(what string, true func() bool) {
	w.t.Helper()
	if !services.Within(patience, true) {
		w.t.Fatalf("within %v it is not so that %s", patience, what)
	}
}
