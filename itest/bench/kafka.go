package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/kafka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// KafkaOptions configure a measurement of the whole path from a broker to the database.
type KafkaOptions struct {
	Brokers []string
	Rounds  int
	// Messages is the number of messages in the topic. MeasureKafka reduces Messages if the messages would be larger
	// than 200 MB. Each run consumes all messages in a group of its own.
	Messages int
	// Bodies are the kinds of message bodies to measure.
	Bodies []Body
	// Only selects the rows that are measured: those for whose conditions the function returns true.
	Only func(Conditions) bool
	// Progress is called after each row.
	Progress func(done, of int, r Row)
}

// kafkaPartitions is the number of partitions of the topic.
const kafkaPartitions = 6

// kafkaTopic is a topic full of messages.
type kafkaTopic struct {
	brokers  []string
	name     string
	messages int
}

// MeasureKafka measures the path from a broker to the database, including joining and leaving the group. MeasureKafka
// compares Semel with a plain loop. Semel's handlers queue their statements (the form Queue), once with the default
// number of workers and once with one worker. The report lists the loop as Hand, and the second run of the loop as
// Again. The loop is one goroutine with the same form and batch size, and does not recognise duplicates.
func (w *World) MeasureKafka(ctx context.Context, o KafkaOptions) ([]Row, error) {
	var rows []Row
	plan := slices.DeleteFunc(kafkaPlan(o.Bodies), func(c Conditions) bool { return !o.Only(c) })
	for i, c := range plan {
		r, err := w.kafkaRow(ctx, o, c)
		if err != nil {
			return rows, fmt.Errorf("%v: %w", c, err)
		}
		rows = append(rows, r)
		if o.Progress != nil {
			o.Progress(i+1, len(plan), r)
		}
	}
	return rows, nil
}

// kafkaPlan returns the rows to measure. Messages without a body are measured with two kinds of ids. Messages with a
// body are measured with one kind of ids, because the body causes most of the cost.
func kafkaPlan(of []Body) (plan []Conditions) {
	for _, body := range of {
		kinds := []IDs{UUIDv7, Text}
		if body != (Body{}) {
			kinds = kinds[:1]
		}
		for _, ids := range kinds {
			for _, workers := range []int{consumer.Defaults().Workers, 1} {
				plan = append(plan, Conditions{Form: Queue, Effect: Insert, Workers: workers, IDs: ids, Body: body})
			}
		}
	}
	return plan
}

// The approximate maximum size of all bodies in a topic.
const topicMost = 200_000_000

func (w *World) kafkaRow(ctx context.Context, o KafkaOptions, c Conditions) (r Row, err error) {
	d, err := w.database(ctx, 0)
	if err != nil {
		return r, err
	}
	topic := kafkaTopic{brokers: o.Brokers, messages: min(o.Messages, int(topicMost/c.Body.Mean())), name: fmt.Sprintf("semelbench-%d-%d", os.Getpid(), time.Now().UnixNano())}
	if err := topic.fill(ctx, c); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, topic.delete(context.WithoutCancel(ctx))) }()
	r = Row{Conditions: c, Runs: map[Contestant][]Run{}}
	all := []Contestant{Hand, Semel, Again}
	for round := range o.Rounds + 1 { // the first round is a warm-up and does not count
		for i := range all {
			who := all[i]
			if round%2 == 1 {
				who = all[len(all)-1-i]
			}
			run, err := d.kafkaRun(ctx, who, c, topic, round)
			if err != nil {
				return r, fmt.Errorf("%s: %w", who, err)
			}
			if round > 0 {
				r.Runs[who] = append(r.Runs[who], run)
			}
		}
	}
	return r, nil
}

func (t kafkaTopic) admin(do func(*kadm.Client) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(t.brokers...))
	if err != nil {
		return err
	}
	defer client.Close()
	return do(kadm.NewClient(client))
}

func (t kafkaTopic) delete(ctx context.Context) error {
	return t.admin(func(a *kadm.Client) error {
		_, err := a.DeleteTopic(ctx, t.name)
		return err
	})
}

// fill creates the topic and produces the messages to all partitions in turn.
func (t kafkaTopic) fill(ctx context.Context, c Conditions) error {
	err := t.admin(func(a *kadm.Client) error {
		_, err := a.CreateTopic(ctx, kafkaPartitions, -1, nil, t.name)
		return err
	})
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(t.brokers...), kgo.DefaultProduceTopic(t.name), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	first := kgo.AbortingFirstErrPromise(client)
	g := c.generator()
	for range t.messages {
		m := g.next()
		client.Produce(ctx, &kgo.Record{Value: m.Body, Headers: []kgo.RecordHeader{{Key: m.Headers[0].Name, Value: m.Headers[0].Value}}}, first.Promise())
	}
	return first.Err()
}

func (d *database) kafkaRun(ctx context.Context, who Contestant, c Conditions, t kafkaTopic, round int) (Run, error) {
	if err := d.reset(ctx); err != nil {
		return Run{}, err
	}
	group := fmt.Sprintf("%s-%s-%d", t.name, who, round)
	runtime.GC()
	worked, began := cpuTime(), time.Now()
	var applied int
	var err error
	if who == Semel {
		applied, err = d.kafkaSemel(ctx, c, t, group)
	} else {
		applied, err = kafkaLoop(ctx, t, group, d.pool, c.Effect.singleStatement())
	}
	run := Run{Messages: applied, Took: time.Since(began), Busy: cpuTime() - worked}
	if err == nil && applied != t.messages {
		err = fmt.Errorf("%d of %d messages applied", applied, t.messages)
	}
	return run, err
}

// ending stops a run when a given number of messages is committed.
type ending struct {
	left atomic.Int64
	end  func()
}

func (e *ending) Observe(v semel.Event) {
	if v.Kind == eventkind.Committed && e.left.Add(-int64(v.Messages)) == 0 {
		e.end()
	}
}

func (d *database) kafkaSemel(ctx context.Context, c Conditions, t kafkaTopic, group string) (int, error) {
	source, err := kafka.New(kafka.Config{Brokers: t.brokers, Topics: []string{t.name}, Group: group, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e := &ending{end: cancel}
	e.left.Store(int64(t.messages))
	run, err := d.consumer(c, consumer.Config{
		Name: "bench", Source: source, Identity: identity.By("header:id"), Workers: c.Workers,
		Batch:  consumer.BatchLimits{MaxSize: batchMost, MaxTime: time.Minute},
		Logger: slog.New(slog.DiscardHandler), Observers: []semel.Observer{e},
	})
	if err != nil {
		return 0, err
	}
	counts, err := run(ctx)
	return int(counts.Applied), err
}
