package nats_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/nats"
	"github.com/semel-go/semel/source"
)

// shortWait makes the server deliver a message again after a second.
func shortWait(c *jetstream.ConsumerConfig) { c.AckWait = time.Second }

// zombie is a process that the server believed dead: its message went to an heir.
type zombie struct {
	js            jetstream.JetStream
	consumer      jetstream.Consumer
	answers       *answers
	proxy         *proxy
	source, heir  *nats.Source
	had, inherits source.Delivery
}

// freeze lets a source fetch a message, blocks its connection until another source has the message, and opens the
// connection again.
func freeze(t *testing.T) *zombie {
	t.Helper()
	s := start(t)
	z := &zombie{js: connect(t, s)}
	stream(t, z.js, func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy })
	z.consumer = durable(t, z.js, shortWait)
	z.answers = record(t, z.js)
	publish(t, z.js, 1)
	way, settings := through(t, s)
	z.proxy = way
	z.source = open(t, settings)
	z.had = fetchOne(t, z.source)
	way.block(true)
	z.heir = open(t, config(s))
	z.inherits = fetchOne(t, z.heir)
	way.block(false)
	timing.Wait(t.Context(), time.Second) // what the zombie sent before its hold time ended arrives now
	return z
}

func TestN1_ALateAckOfAFrozenProcessIsConfirmedAndSoIsThatOfTheHeir(t *testing.T) {
	t.Parallel()
	z := freeze(t)
	settle(t, z.source, semel.Ack, z.had)
	settle(t, z.heir, semel.Ack, z.inherits)
	await(t, z.consumer, "settled", func(i *jetstream.ConsumerInfo) bool { return i.NumAckPending == 0 })
	nothing(t, z.heir, 1500*time.Millisecond)
}

func TestN2_N3_AFrozenProcessSendsNoLateNackAndNeverTerminates(t *testing.T) {
	t.Parallel()
	z := freeze(t)
	settle(t, z.source, semel.Nack, z.had)
	must.OK(t, z.source.Close(t.Context()))
	nothing(t, z.heir, time.Second)
	if n := z.answers.count("-NAK", ""); n > 0 {
		t.Errorf("%d nacks were sent although the hold time had passed", n)
	}
	if n := z.answers.count("+TERM", ""); n > 0 {
		t.Errorf("%d messages were terminated", n)
	}
	settle(t, z.heir, semel.Nack, z.inherits)
	if again := fetchOne(t, z.heir); string(again.Message.Body) != "0" {
		t.Errorf("the heir's message does not come again")
	}
}

func TestN4_AFrozenProcessDoesNotKeepTheMessageOfADeadHeir(t *testing.T) {
	t.Parallel()
	z := freeze(t)
	before := z.answers.count("+WPI", "1")
	timing.Wait(t.Context(), 1500*time.Millisecond)
	if n := z.answers.count("+WPI", "1"); n > before {
		t.Errorf("the frozen process extended its lost delivery %d times", n-before)
	}
	if z.answers.count("+WPI", "2") == 0 {
		t.Error("the heir did not extend its delivery")
	}
}

func TestN4_ExtensionsStopWhenTheLaneIsLost(t *testing.T) {
	t.Parallel()
	s := start(t)
	js := connect(t, s)
	stream(t, js)
	durable(t, js, shortWait)
	publish(t, js, 2)
	answers := record(t, js)
	src := open(t, config(s))
	lanes := &lanes{}
	src.Lanes(lanes)
	old := fetch(t, src, 2)
	must.OK(t, js.DeleteStream(t.Context(), streamName))
	stream(t, js)
	fresh := durable(t, js, shortWait)
	publish(t, js, 2)
	again := eventually(t, src)
	if again.Lane.Epoch == old[0].Lane.Epoch || again.Lane.ID != old[0].Lane.ID {
		t.Errorf("the lane %v has no new epoch: %v", old[0].Lane, again.Lane)
	}
	if !lanes.wasLost(old[0].Lane) {
		t.Error("the observer was not told of the lost lane")
	}
	acks := answers.count("+ACK", "")
	settle(t, src, semel.Ack, old...) // would ack the new messages with the same sequences
	if n := answers.count("+ACK", ""); n != acks {
		t.Errorf("%d acks of the deleted stream were sent to the new one", n-acks)
	}
	info, err := fresh.Info(t.Context())
	must.OK(t, err)
	if info.AckFloor.Stream != 0 {
		t.Errorf("the new consumer has acks up to message %d", info.AckFloor.Stream)
	}
}

// eventually calls Fetch until it returns a delivery, and ignores errors.
func eventually(t testing.TB, s source.Source) source.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		got, err := s.Fetch(ctx, source.Bound{Messages: 1, Bytes: 1 << 20})
		if len(got) > 0 {
			return got[0]
		}
		if ctx.Err() != nil {
			t.Fatalf("nothing was delivered: %v", err)
		}
		timing.Wait(ctx, 20*time.Millisecond)
	}
}

type lanes struct {
	mu   sync.Mutex
	lost []source.Lane
}

func (l *lanes) Given(source.Lane) {}

func (l *lanes) Revoking(context.Context, source.Lane) {}

func (l *lanes) Lost(lane source.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = append(l.lost, lane)
}

func (l *lanes) wasLost(lane source.Lane) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.lost {
		if one == lane {
			return true
		}
	}
	return false
}

func TestN7_MessagesThatWaitForASlowHandlerAreDeliveredOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	js := connect(t, s)
	stream(t, js)
	consumer := durable(t, js, shortWait)
	const n = 60
	publish(t, js, n)
	src := open(t, config(s))
	runs := 0
	for runs < n {
		for _, d := range fetch(t, src, 20) { // the last of 20 messages waits a second, the ack wait
			timing.Wait(t.Context(), 50*time.Millisecond)
			settle(t, src, semel.Ack, d)
			runs++
		}
	}
	await(t, consumer, "settled", func(i *jetstream.ConsumerInfo) bool { return i.NumAckPending == 0 && i.NumPending == 0 })
	info, err := consumer.Info(t.Context())
	must.OK(t, err)
	if runs != n || info.Delivered.Consumer != n {
		t.Errorf("%d messages had %d handler runs and %d deliveries", n, runs, info.Delivered.Consumer)
	}
}

func TestN7_OnlyWhatTheConsumerAsksForIsFetched(t *testing.T) {
	t.Parallel()
	s := start(t)
	js := connect(t, s)
	stream(t, js)
	consumer := durable(t, js)
	publish(t, js, 50)
	src := open(t, config(s))
	for got := 0; got < 7; {
		got += len(fetch(t, src, 7-got))
	}
	info, err := consumer.Info(t.Context())
	must.OK(t, err)
	if info.NumAckPending > 13 { // the first pull of 7, and one of what was missing
		t.Errorf("%d messages were fetched for 7", info.NumAckPending)
	}
}

func TestN10_ARecreatedConsumerBeginsAgainInANewEpoch(t *testing.T) {
	t.Parallel()
	s := start(t)
	js := connect(t, s)
	stream(t, js)
	durable(t, js)
	publish(t, js, 1)
	src := open(t, config(s))
	first := fetchOne(t, src)
	settle(t, src, semel.Ack, first)
	must.OK(t, js.DeleteConsumer(t.Context(), streamName, consumerName))
	durable(t, js)
	again := eventually(t, src)
	if string(again.Message.Body) != "0" || again.Lane.Epoch == first.Lane.Epoch {
		t.Errorf("message %s, delivered %d times before, in epoch %d", again.Message.Body, again.Before, again.Lane.Epoch)
	}
}

func TestN12_MessagesThatTheStreamRemovedUnreadAreReported(t *testing.T) {
	t.Parallel()
	s := start(t)
	js := connect(t, s)
	stream(t, js, func(c *jetstream.StreamConfig) { c.MaxMsgs = 3 })
	durable(t, js)
	publish(t, js, 8)
	var log syncBuffer
	c := config(s)
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	if d := fetchOne(t, open(t, c)); string(d.Message.Body) != "5" {
		t.Errorf("the first message is %s", d.Message.Body)
	}
	if text := log.String(); !strings.Contains(text, "messages were lost") || !strings.Contains(text, "first=1 last=5") {
		t.Errorf("the log does not name the lost messages: %s", text)
	}
}

type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestN15_ASecondAckOfADeliveryIsNoError(t *testing.T) {
	t.Parallel()
	s := start(t)
	js := connect(t, s)
	stream(t, js)
	durable(t, js)
	publish(t, js, 1)
	src := open(t, config(s))
	d := fetchOne(t, src)
	settle(t, src, semel.Ack, d)
	settle(t, src, semel.Ack, d)
}

func TestN16_AnAckThatTheServerDoesNotConfirmIsReturned(t *testing.T) {
	t.Parallel()
	s := start(t)
	js := connect(t, s)
	stream(t, js)
	consumer := durable(t, js)
	publish(t, js, 2)
	way, settings := through(t, s)
	src := open(t, settings)
	got := fetch(t, src, 2)
	way.block(true)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	left, err := src.Settle(ctx, []source.Settlement{{Delivery: &got[0], Kind: semel.Ack}})
	if len(left) != 1 || err == nil {
		t.Fatalf("left %v, %v", left, err)
	}
	way.block(false)
	settle(t, src, semel.Ack, got[0])
	await(t, consumer, "settled", func(i *jetstream.ConsumerInfo) bool { return i.AckFloor.Stream == 1 })
}

func TestNothingIsSentAfterAReconnectThatWasWrittenBefore(t *testing.T) {
	t.Parallel()
	options := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true}
	first := run(t, options)
	port := first.Addr().(*net.TCPAddr).Port
	js := connect(t, first)
	stream(t, js, func(c *jetstream.StreamConfig) { c.Storage = jetstream.FileStorage })
	durable(t, js)
	publish(t, js, 2)
	src := open(t, config(first))
	got := fetch(t, src, 2)
	first.Shutdown()
	first.WaitForShutdown()
	left, err := src.Settle(t.Context(), []source.Settlement{{Delivery: &got[0], Kind: semel.Ack}})
	if len(left) != 1 || err == nil {
		t.Fatalf("left %v, %v although no server runs", left, err)
	}
	if _, err := src.Fetch(t.Context(), source.Bound{Messages: 1, Bytes: 1}); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("Fetch without a server: %v", err)
	}
	again := *options
	again.Port = port
	run(t, &again)
	eventually(t, src)
	settle(t, src, semel.Ack, got...)
}
