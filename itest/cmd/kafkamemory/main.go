//go:build linux

// Kafkamemory prints the maximum memory of a Kafka consumer for topics that compress well, as the operating
// system reports it. Each topic is read into PostgreSQL by a process of its own.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/workload"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// load is a topic to measure, and the way in which the topic is read.
type load struct {
	name        string
	count, size int
	batch       int32
	// blocked is true if the only batch of the topic is too large to read, so that its partition is blocked.
	blocked bool
}

func loads() []load {
	return []load{
		{name: "empty", count: 1, size: 1, batch: 1 << 20},
		{name: "240,000 records of 1 KB", count: 240_000, size: 1_000, batch: 1 << 20},
		{name: "2,400 records of 900 KB", count: 2_400, size: 900_000, batch: 1 << 20},
		{name: "200 records of 900 KB a batch", count: 2_400, size: 900_000, batch: 180_000_000 / 8},
		{name: "a batch of 900 MB", count: 1_000, size: 900_000, batch: 950_000_000, blocked: true},
	}
}

func main() {
	broker := flag.String("kafka", os.Getenv("SEMEL_KAFKA"), "a broker, host:port")
	dsn := flag.String("dsn", os.Getenv("SEMEL_POSTGRES"), "a database (postgres://…)")
	bound := flag.Int64("bound", 64<<20, "max_unacked in bytes")
	topic := flag.String("read", "", "read this topic and print the memory that it needed")
	waits := flag.Bool("waits", false, "with -read, the topic's partition must be blocked at the end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := proof.Attempt(func() {
		if *topic != "" {
			read(ctx, *broker, *dsn, *topic, *bound, *waits)
		} else {
			measureAll(ctx, *broker, *dsn, *bound)
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "kafkamemory:", err)
		stop()
		os.Exit(1)
	}
}

// measureAll creates each topic, starts a process that reads the topic, and deletes the topic.
func measureAll(ctx context.Context, broker, dsn string, bound int64) {
	if broker == "" || dsn == "" {
		proof.Check(errors.New("no server: set SEMEL_KAFKA and SEMEL_POSTGRES, or -kafka and -dsn"))
	}
	migrate(ctx, dsn)
	fmt.Printf("max_unacked %d MiB\n", bound>>20)
	for n, l := range loads() {
		topic := fmt.Sprintf("kafkamemory-%d-%d", os.Getpid(), n)
		onDisk := l.write(ctx, broker, topic)
		arguments := []string{"-kafka", broker, "-dsn", dsn, "-bound", strconv.FormatInt(bound, 10), "-read", topic}
		if l.blocked {
			arguments = append(arguments, "-waits")
		}
		child := exec.CommandContext(ctx, os.Args[0], arguments...)
		child.Stderr = os.Stderr
		said, err := child.Output()
		fmt.Printf("%-32s %8.1f MB as it is compressed: %s\n", l.name, float64(onDisk)/1e6, bytes.TrimSpace(said))
		proof.Check(err)
	}
}

func migrate(ctx context.Context, dsn string) {
	pool := proof.Must(pgxpool.New(ctx, dsn))
	defer pool.Close()
	proof.Must(proof.Must(pgxstore.New(pool, pgxstore.Options{})).Migrate(ctx))
}

// write creates a topic with one partition, fills it, and returns its size on the broker.
func (l load) write(ctx context.Context, broker, topic string) (onDisk int64) {
	var written byteCounter
	c := proof.Must(kgo.NewClient(kgo.SeedBrokers(broker), kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerBatchMaxBytes(l.batch),
		kgo.BrokerMaxWriteBytes(1<<30), kgo.MaxBufferedRecords(2_000), kgo.ProducerLinger(300*time.Millisecond), kgo.WithHooks(&written), kgo.DisableClientMetrics()))
	defer c.Close()
	limit := strconv.Itoa(90 << 20)
	proof.Check(proof.Must(kadm.NewClient(c).CreateTopic(ctx, 1, 1, map[string]*string{"max.message.bytes": &limit}, topic)).Err)
	value := bytes.Repeat([]byte(`{"account": "0190b5c4-7a1e-7cc0", "amount": 12, "currency": "EUR"} `), l.size/60+1)[:l.size]
	var failed error
	for n := range l.count {
		r := &kgo.Record{Topic: topic, Value: value, Headers: []kgo.RecordHeader{{Key: "id", Value: []byte(topic + strconv.Itoa(n))}}}
		c.Produce(ctx, r, func(_ *kgo.Record, err error) { failed = cmp.Or(failed, err) })
	}
	proof.Check(cmp.Or(c.Flush(ctx), failed))
	return written.bytes
}

// byteCounter counts the compressed bytes that are written.
type byteCounter struct{ bytes int64 }

// OnProduceBatchWritten implements kgo.HookProduceBatchWritten.
func (w *byteCounter) OnProduceBatchWritten(_ kgo.BrokerMetadata, _ string, _ int32, m kgo.ProduceBatchMetrics) {
	w.bytes += int64(m.CompressedBytes)
}

// read reads a topic and prints the maximum memory of this process.
func read(ctx context.Context, broker, dsn, topic string, bound int64, waits bool) {
	src := proof.Must(kafka.New(kafka.Config{Brokers: []string{broker}, Topics: []string{topic}, Group: topic, Logger: slog.New(slog.DiscardHandler)}))
	run, closePool, err := workload.Drivers()[1].Open(workload.Options{DSN: dsn, Connections: 3,
		Handler: func(context.Context, workload.Exec, *semel.Message) error { return nil },
		Config: consumer.Config{Name: topic, Source: src, Identity: identity.By("header:id"), MaxUnacked: source.Bound{Messages: 100_000, Bytes: bound},
			IdleExit: 3 * time.Second, Logger: slog.New(slog.DiscardHandler)}})
	proof.Check(err)
	defer closePool()
	began := time.Now()
	err = run.Run(ctx)
	switch left := errors.Is(err, semel.ErrUnfinished); {
	case err != nil && !left:
		proof.Check(err)
	case left != waits:
		proof.Check(fmt.Errorf("the partition waits: %t, and should: %t (%v)", left, waits, err))
	}
	peak := proof.Must(maxMemory())
	fmt.Printf("%.1f MiB resident at most; %d applied in %v", float64(peak)/(1<<20), run.Counts().Applied, time.Since(began).Round(100*time.Millisecond))
	if waits {
		fmt.Print("; it waits, and the run says so")
	}
}

// maxMemory returns the maximum memory of this process so far, in bytes.
func maxMemory() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if text, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, err := strconv.ParseInt(strings.Fields(text)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc/self/status does not say VmHWM")
}
