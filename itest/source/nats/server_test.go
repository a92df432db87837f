// Package nats_test tests the source for NATS JetStream with a real server.
package nats_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/nats"
	"github.com/semel-go/semel/source"
)

// patience is the longest time that a test waits for an event that should happen.
const patience = 20 * time.Second

// start starts a server with JetStream, which is stopped at the end of the test.
func start(t testing.TB, change ...func(*server.Options)) *server.Server {
	t.Helper()
	options := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true}
	for _, set := range change {
		set(options)
	}
	return run(t, options)
}

func run(t testing.TB, options *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(options)
	must.OK(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	return s
}

// connect returns a connection for the test itself.
func connect(t testing.TB, s *server.Server, options ...client.Option) jetstream.JetStream {
	t.Helper()
	conn, err := client.Connect(s.ClientURL(), options...)
	must.OK(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	must.OK(t, err)
	return js
}

const (
	streamName   = "ORDERS"
	consumerName = "billing"
	subject      = "orders.new"
)

// stream creates the stream of a test.
func stream(t testing.TB, js jetstream.JetStream, change ...func(*jetstream.StreamConfig)) jetstream.Stream {
	t.Helper()
	c := jetstream.StreamConfig{Name: streamName, Subjects: []string{"orders.*"}, Storage: jetstream.MemoryStorage}
	for _, set := range change {
		set(&c)
	}
	made, err := js.CreateStream(t.Context(), c)
	must.OK(t, err)
	return made
}

// durable creates the consumer of a test.
func durable(t testing.TB, js jetstream.JetStream, change ...func(*jetstream.ConsumerConfig)) jetstream.Consumer {
	t.Helper()
	c := jetstream.ConsumerConfig{Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: 2 * time.Second}
	for _, set := range change {
		set(&c)
	}
	made, err := js.CreateConsumer(t.Context(), streamName, c)
	must.OK(t, err)
	return made
}

func config(s *server.Server) nats.Config {
	return nats.Config{Servers: []string{s.ClientURL()}, Stream: streamName, Consumer: consumerName, Logger: slog.New(slog.DiscardHandler)}
}

// open returns a source, which is closed at the end of the test.
func open(t testing.TB, c nats.Config) *nats.Source {
	t.Helper()
	s, err := nats.New(c)
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, s.Close(context.Background())) })
	return s
}

// fetch calls Fetch until it returns deliveries.
func fetch(t testing.TB, s source.Source, most int) []source.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		got, err := s.Fetch(ctx, source.Bound{Messages: most, Bytes: 1 << 20})
		must.OK(t, err)
		if len(got) > 0 {
			return got
		}
		if ctx.Err() != nil {
			t.Fatal("nothing was delivered")
		}
	}
}

func fetchOne(t testing.TB, s source.Source) source.Delivery {
	t.Helper()
	return fetch(t, s, 1)[0]
}

// nothing checks that a source delivers nothing for some time.
func nothing(t testing.TB, s source.Source, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	for ctx.Err() == nil {
		got, err := s.Fetch(ctx, source.Bound{Messages: 10, Bytes: 1 << 20})
		if len(got) > 0 {
			t.Fatalf("message %s was delivered", got[0].Message.Origin.BrokerID)
		}
		if err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
	}
}

func settle(t testing.TB, s source.Source, kind semel.SettleKind, all ...source.Delivery) {
	t.Helper()
	var settlements []source.Settlement
	for i := range all {
		settlements = append(settlements, source.Settlement{Delivery: &all[i], Kind: kind})
	}
	left, err := s.Settle(t.Context(), settlements)
	must.OK(t, err)
	if len(left) > 0 {
		t.Fatalf("%d of %d were left", len(left), len(all))
	}
}

func publish(t testing.TB, js jetstream.JetStream, n int) {
	t.Helper()
	for i := range n {
		_, err := js.Publish(t.Context(), subject, []byte(fmt.Sprint(i)))
		must.OK(t, err)
	}
}

// await waits until a condition of the consumer holds.
func await(t testing.TB, c jetstream.Consumer, what string, holds func(*jetstream.ConsumerInfo) bool) {
	t.Helper()
	for until := time.Now().Add(patience); ; {
		info, err := c.Info(t.Context())
		must.OK(t, err)
		if holds(info) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("not %s: %d pending, %d waiting for acks", what, info.NumPending, info.NumAckPending)
		}
		timing.Wait(t.Context(), 20*time.Millisecond)
	}
}
