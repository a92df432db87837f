package nats_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/nats"
	"github.com/semel-go/semel/source"
)

const ids = 300

// twice publishes each id twice, the second time after the duplicate window of the stream.
func twice(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	stream(t, js, func(c *jetstream.StreamConfig) { c.Duplicates = 100 * time.Millisecond })
	for range 2 {
		for i := range ids {
			_, err := js.PublishMsg(t.Context(), &client.Msg{Subject: subject, Data: []byte("{}"), Header: client.Header{"Nats-Msg-Id": {fmt.Sprint(i)}}})
			must.OK(t, err)
		}
		timing.Wait(t.Context(), time.Second)
	}
}

// billing returns a consumer that counts the effects of each id in the store.
func billing(t *testing.T, st *memstore.Store, src source.Source, applied func()) *consumer.Consumer[*memstore.Tx] {
	t.Helper()
	c, err := consumer.New(st, func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
		applied()
		return tx.Add("effect "+m.Identity.ID, 1)
	}, consumer.Config{
		Name: "billing", Source: src, Identity: identity.By("header:Nats-Msg-Id"), Lanes: consumer.LanesNone,
		IdleExit: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	must.OK(t, err)
	return c
}

func once(t *testing.T, st *memstore.Store) {
	t.Helper()
	for i := range ids {
		if got := string(st.Get(fmt.Sprintf("effect %d", i))); got != "1" {
			t.Errorf("message %d has %q effects", i, got)
		}
	}
}

func TestN13_N19_CopiesOutsideTheWindowOfTheStreamTakeEffectOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	js := connect(t, s)
	twice(t, js)
	if info := must.Get(js.Stream(t.Context(), streamName))(t).CachedInfo(); info.State.Msgs != 2*ids {
		t.Fatalf("the stream has %d messages; the copies are missing", info.State.Msgs)
	}
	durable(t, js)
	st := memstore.New()
	must.OK(t, billing(t, st, open(t, config(s)), func() {}).Run(t.Context()))
	once(t, st)
}

// Two processes share the consumer. One of them is cut off from the server while it has messages, longer than the ack
// wait, and continues when the other has got them.
func TestEachMessageTakesEffectOnceAlthoughAProcessIsFrozen(t *testing.T) {
	t.Parallel()
	s := start(t)
	js := connect(t, s)
	twice(t, js)
	made := durable(t, js, shortWait)
	st := memstore.New()
	way, settings := through(t, s)
	began := make(chan struct{}, 2*ids)
	frozen := billing(t, st, open(t, settings), func() {
		select {
		case began <- struct{}{}:
		default:
		}
		timing.Wait(t.Context(), time.Millisecond)
	})
	other := billing(t, st, open(t, config(s)), func() {})
	var group worker.Group
	defer group.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	group.Go(func() {
		if err := frozen.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the frozen process: %v", err)
		}
	})
	<-began
	way.block(true)
	group.Go(func() {
		timing.Wait(ctx, 3*time.Second)
		way.block(false)
	})
	must.OK(t, other.Run(t.Context()))
	await(t, made, "everything settled", func(i *jetstream.ConsumerInfo) bool { return i.NumPending == 0 && i.NumAckPending == 0 })
	once(t, st)
}

func TestAConsumerWithOrderIsRefused(t *testing.T) {
	t.Parallel()
	src, err := nats.New(nats.Config{Servers: []string{"nats://127.0.0.1:1"}, Stream: streamName, Consumer: consumerName})
	must.OK(t, err)
	c, err := consumer.New(memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error { return nil }, consumer.Config{
		Name: "billing", Source: src, Identity: identity.By("header:Nats-Msg-Id"), Logger: slog.New(slog.DiscardHandler),
	})
	must.OK(t, err)
	if err := c.Run(t.Context()); !errors.Is(err, semel.ErrUnsupported) {
		t.Errorf("a consumer with Lanes: LanesPartition started: %v", err)
	}
}
