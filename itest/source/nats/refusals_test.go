package nats_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/nats"
	"github.com/semel-go/semel/source"
)

// refused checks that Fetch returns a permanent error with all texts and without the password.
func refused(t *testing.T, c nats.Config, texts ...string) {
	t.Helper()
	s := open(t, c)
	_, err := s.Fetch(t.Context(), source.Bound{Messages: 1, Bytes: 1})
	var permanent *semel.HandlerError
	if !errors.As(err, &permanent) || permanent.Decision != semel.DecidePermanent {
		t.Fatalf("the error is not permanent: %v", err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error lacks %q: %v", text, err)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the error has a password: %v", err)
	}
}

func TestAConsumerWhoseSettingsDoNotFitIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	js := connect(t, s)
	stream(t, js)
	const edit = "nats consumer edit ORDERS billing "
	for name, one := range map[string]struct {
		change func(*jetstream.ConsumerConfig)
		texts  []string
	}{
		"N9: a limit of deliveries":            {func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 5 }, []string{"at most 5 times", edit + "--max-deliver=-1"}},
		"N11: removed when it is not read":     {func(c *jetstream.ConsumerConfig) { c.InactiveThreshold = time.Hour }, []string{"1h0m0s", "inactive_threshold", edit + "--interactive"}},
		"N20: ephemeral":                       {func(c *jetstream.ConsumerConfig) { c.Durable, c.Name = "", consumerName }, []string{"ephemeral or ordered", "nats consumer add ORDERS NAME"}},
		"no ack":                               {func(c *jetstream.ConsumerConfig) { c.AckPolicy = jetstream.AckNonePolicy }, []string{"ack policy AckNone", "--ack=explicit"}},
		"one ack for all":                      {func(c *jetstream.ConsumerConfig) { c.AckPolicy = jetstream.AckAllPolicy }, []string{"ack policy AckAll", "--ack=explicit"}},
		"headers only":                         {func(c *jetstream.ConsumerConfig) { c.HeadersOnly = true }, []string{"headers_only", edit + "--no-headers-only"}},
		"an ack wait that is too short":        {func(c *jetstream.ConsumerConfig) { c.AckWait = 100 * time.Millisecond }, []string{"100ms", edit + "--wait=30s"}},
		"N14: a backoff that is too short":     {func(c *jetstream.ConsumerConfig) { c.BackOff = []time.Duration{50 * time.Millisecond} }, []string{"50ms", "backoff"}},
		"N5, N6: one pinned client":            {pinned, []string{"priority groups"}},
		"two faults in one error":              {func(c *jetstream.ConsumerConfig) { c.MaxDeliver, c.HeadersOnly = 5, true }, []string{"max_deliver", "headers_only"}},
		"a push consumer, which needs no pull": {func(c *jetstream.ConsumerConfig) { c.DeliverSubject = "pushed" }, []string{"push consumer", "--pull"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := jetstream.ConsumerConfig{Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: 2 * time.Second}
			one.change(&c)
			var err error
			if c.DeliverSubject == "" {
				_, err = js.CreateConsumer(t.Context(), streamName, c)
			} else {
				_, err = js.CreatePushConsumer(t.Context(), streamName, c)
			}
			must.OK(t, err)
			refused(t, config(s), append(one.texts, "consumer billing of stream ORDERS")...)
			must.OK(t, js.DeleteConsumer(t.Context(), streamName, consumerName))
		})
	}
}

func pinned(c *jetstream.ConsumerConfig) {
	c.PriorityPolicy, c.PriorityGroups, c.PinnedTTL = jetstream.PriorityPolicyPinned, []string{"one"}, time.Minute
}

func TestAStreamOrAConsumerThatDoesNotExistIsNamed(t *testing.T) {
	t.Parallel()
	s := start(t)
	js := connect(t, s)
	refused(t, config(s), "stream ORDERS does not exist on 127.0.0.1:", "nats stream add ORDERS")
	stream(t, js)
	refused(t, config(s), "stream ORDERS has no consumer billing", "nats consumer add ORDERS billing --pull --ack=explicit")
	src := open(t, config(s))
	_, err := src.Fetch(t.Context(), source.Bound{Messages: 1, Bytes: 1})
	if err == nil {
		t.Fatal("no error without a consumer")
	}
	durable(t, js)
	publish(t, js, 1)
	settle(t, src, semel.Ack, fetchOne(t, src)) // the next Fetch finds what was created meanwhile
}

func TestWrongCredentialsAreNamed(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "billing", Password: "right"}}
	})
	c := config(s)
	c.Servers = []string{strings.Replace(s.ClientURL(), "nats://", "nats://billing:secret@", 1)}
	refused(t, c, "rejected the credentials", "127.0.0.1:")
}

func TestAMissingPermissionIsNamed(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *server.Options) {
		denied := &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$JS.API.CONSUMER.INFO.>"}}}
		o.Users = []*server.User{{Username: "admin", Password: "right"}, {Username: "billing", Password: "right", Permissions: denied}}
	})
	js := connect(t, s, client.UserInfo("admin", "right"))
	stream(t, js)
	durable(t, js)
	c := config(s)
	c.Servers = []string{strings.Replace(s.ClientURL(), "nats://", "nats://billing:right@", 1)}
	refused(t, c, "may not read consumer billing of stream ORDERS", "$JS.API.CONSUMER.INFO.ORDERS.billing")
}

func TestAServerWithoutJetStreamIsNamed(t *testing.T) {
	t.Parallel()
	s := start(t, func(o *server.Options) { o.JetStream = false })
	src := open(t, config(s))
	_, err := src.Fetch(t.Context(), source.Bound{Messages: 1, Bytes: 1})
	if err == nil || !strings.Contains(err.Error(), "JetStream") {
		t.Errorf("the error does not say that JetStream is missing: %v", err)
	}
}

func TestAServerThatDoesNotRunIsNamed(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := config(s)
	s.Shutdown()
	s.WaitForShutdown()
	_, err := open(t, c).Fetch(t.Context(), source.Bound{Messages: 1, Bytes: 1})
	if err == nil || !strings.Contains(err.Error(), "does not answer; check that a server runs there") {
		t.Errorf("the error does not name the server: %v", err)
	}
}
