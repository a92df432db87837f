package nats

import (
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/source"
)

func TestNewReportsAllFaultsOfTheConfiguration(t *testing.T) {
	_, err := New(Config{Servers: []string{"127.0.0.1"}, Stream: "orders.*"})
	if err == nil {
		t.Fatal("New accepted a faulty configuration")
	}
	for _, want := range []string{"Servers[0]", `Stream is "orders.*"`, "Consumer is empty"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if _, err := New(Config{Stream: "ORDERS", Consumer: "billing"}); err == nil || !strings.Contains(err.Error(), "Servers is empty") {
		t.Errorf("without servers: %v", err)
	}
}

func TestNoPasswordIsLogged(t *testing.T) {
	s, err := New(Config{Servers: []string{"nats://billing:secret@127.0.0.1:4222"}, Stream: "ORDERS", Consumer: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	text := s.LogValue().String()
	if strings.Contains(text, "secret") || !strings.Contains(text, "127.0.0.1:4222") || !strings.Contains(text, "ORDERS") {
		t.Errorf("the log value is %s", text)
	}
}

func TestOptionsOfAUserBreakNoGuarantee(t *testing.T) {
	c := Config{
		Servers: []string{"nats://127.0.0.1:4222"}, Stream: "ORDERS", Consumer: "billing", Logger: slog.New(slog.DiscardHandler),
		Options: []nats.Option{nats.ReconnectBufSize(1 << 20), nats.NoReconnect(), nats.PingInterval(time.Hour), nats.Name("mine")},
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	o := nats.GetDefaultOptions()
	for _, set := range s.config.options(s) {
		if err := set(&o); err != nil {
			t.Fatal(err)
		}
	}
	if o.ReconnectBufSize != -1 || !o.AllowReconnect || o.MaxReconnect != -1 || o.PingInterval > time.Minute {
		t.Errorf("buffer %d, reconnect %t, at most %d times, ping every %v", o.ReconnectBufSize, o.AllowReconnect, o.MaxReconnect, o.PingInterval)
	}
	if o.Name != "mine" {
		t.Errorf("the name is %q", o.Name)
	}
}

// aSession returns a session whose consumer has these settings.
func aSession(c jetstream.ConsumerConfig) *session {
	return &session{lane: lane, info: &jetstream.ConsumerInfo{Stream: "ORDERS", Name: "billing", Config: c}}
}

func TestN14_TheHoldTimeIsTheShortestWaitOfTheServer(t *testing.T) {
	for _, one := range []struct {
		backoff []time.Duration
		want    time.Duration
	}{{nil, 30 * time.Second}, {[]time.Duration{5 * time.Second, 2 * time.Second, time.Minute}, 2 * time.Second}, {[]time.Duration{time.Minute}, 30 * time.Second}} {
		if got := aSession(jetstream.ConsumerConfig{AckWait: 30 * time.Second, BackOff: one.backoff}).hold(); got != one.want {
			t.Errorf("with backoff %v: %v instead of %v", one.backoff, got, one.want)
		}
	}
}

func TestAPullRequestKeepsTheLimitsOfTheConsumer(t *testing.T) {
	most := source.Bound{Messages: 500, Bytes: 1 << 20}
	for name, one := range map[string]struct {
		config jetstream.ConsumerConfig
		alone  bool
		batch  int
		open   time.Duration
		bytes  int
	}{
		"no limits":             {jetstream.ConsumerConfig{AckWait: 30 * time.Second, MaxAckPending: -1}, false, 500, pullFor, 1 << 20},
		"a short ack wait":      {jetstream.ConsumerConfig{AckWait: 2 * time.Second}, false, 500, time.Second / 2, 1 << 20},
		"few unacked messages":  {jetstream.ConsumerConfig{AckWait: 30 * time.Second, MaxAckPending: 10}, false, 10, pullFor, 1 << 20},
		"limits of requests":    {jetstream.ConsumerConfig{AckWait: 30 * time.Second, MaxRequestBatch: 7, MaxRequestExpires: time.Second, MaxRequestMaxBytes: 100}, false, 7, time.Second, 100},
		"a message of any size": {jetstream.ConsumerConfig{AckWait: 30 * time.Second}, true, 1, pullFor, math.MaxInt32},
	} {
		batch, open, bytes := aSession(one.config).request(most, one.alone)
		if batch != one.batch || open != one.open || bytes != one.bytes {
			t.Errorf("%s: %d messages, %v, %d bytes", name, batch, open, bytes)
		}
	}
}

func TestN12_LostMessagesAreThoseBetweenTheLastDeliveryAndTheStream(t *testing.T) {
	for name, one := range map[string]struct {
		delivered, first uint64
		filter           string
		from, to         uint64
		lost             bool
	}{
		"removed unread":      {delivered: 2, first: 6, from: 3, to: 5, lost: true},
		"nothing removed":     {delivered: 2, first: 1},
		"removed after it":    {delivered: 5, first: 6},
		"an empty stream":     {delivered: 0, first: 0},
		"a filtered consumer": {delivered: 2, first: 6, filter: "orders.new"},
	} {
		from, to, lost := lostRange(&jetstream.StreamInfo{State: jetstream.StreamState{FirstSeq: one.first}}, &jetstream.ConsumerInfo{
			Delivered: jetstream.SequenceInfo{Stream: one.delivered}, Config: jetstream.ConsumerConfig{FilterSubject: one.filter},
		})
		if lost != one.lost || lost && (from != one.from || to != one.to) {
			t.Errorf("%s: %t, from %d to %d", name, lost, from, to)
		}
	}
}

func TestErrorsOfTheServerSayWhatToDo(t *testing.T) {
	s, err := New(Config{Servers: []string{"nats://127.0.0.1:4222"}, Stream: "ORDERS", Consumer: "billing"})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		err       error
		permanent bool
		says      string
	}{
		{nats.ErrAuthorization, true, "rejected the credentials"},
		{jetstream.ErrStreamNotFound, true, "nats stream add ORDERS"},
		{jetstream.ErrConsumerNotFound, true, "nats consumer add ORDERS billing"},
		{jetstream.ErrNotPullConsumer, true, "create a pull consumer"},
		{jetstream.ErrJetStreamNotEnabledForAccount, true, "JetStream is not enabled"},
		{jetstream.ErrConsumerDeleted, false, "was deleted"},
		{nats.ErrNoResponders, false, "Domain"},
		{nats.ErrNoServers, false, "check that a server runs there"},
		{errors.New("else"), false, "stream ORDERS, consumer billing on 127.0.0.1:4222: else"},
	} {
		got := s.explain(one.err)
		var handler *semel.HandlerError
		if permanent := errors.As(got, &handler); permanent != one.permanent || !strings.Contains(got.Error(), one.says) || !errors.Is(got, one.err) {
			t.Errorf("%v: permanent %t, %v", one.err, permanent, got)
		}
	}
}

func TestN19_TheSequenceIsNoIdentityAndTheMessageIDIs(t *testing.T) {
	for selector, fits := range map[string]bool{
		"header:Nats-Msg-Id": true, "body:/order/id": true, "offset": false, "header:Nats-Sequence": false, "header:Nats-Stream": false,
		"header:Nats-Time-Stamp": false, "topic": false,
	} {
		if err := identity.By(selector).Validate(); (err == nil) != fits {
			t.Errorf("identity %s: %v", selector, err)
		}
	}
}
