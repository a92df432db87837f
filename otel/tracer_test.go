package otel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/otel"
	"github.com/semel-go/semel/sourcetest"
)

// A text in every field of a message. The text must not appear in any span or metric.
const secret = "s3cr3t"

// tracedMessage returns a message with the trace context of its producer.
func tracedMessage(n int, flags string) *semel.Message {
	m := &semel.Message{Body: []byte(`{"` + secret + `":1}`), Key: []byte(secret), Origin: semel.Origin{Partition: -1, Offset: -1}, Headers: semel.Headers{
		{Name: "id", Value: fmt.Appendf(nil, "%s-%d", secret, n)}, {Name: secret, Value: []byte(secret)},
	}}
	if flags != "" {
		m.Headers = append(m.Headers, semel.Header{Name: "traceparent", Value: fmt.Appendf(nil, "00-%032x-%016x-%s", n, 0xabc, flags)},
			semel.Header{Name: "tracestate", Value: []byte("vendor=x")})
	}
	return m
}

// run lets a consumer apply messages. Every third message fails permanently (n%3 == 2).
func run(t *testing.T, observers []semel.Observer, messages ...*semel.Message) *consumer.Consumer[*memstore.Tx] {
	t.Helper()
	source := sourcetest.NewMemory(1)
	for _, m := range messages {
		if err := source.Publish(0, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := source.End(); err != nil {
		t.Fatal(err)
	}
	c, err := consumer.New(memstore.New(), handle, consumer.Config{Name: "billing", Source: source, Identity: identity.By("header:id"), Observers: observers,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// seen has the span and the trace context that a handler got.
type seen struct{ span, message string }

var saw = map[string]seen{}

func handle(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
	at, _ := m.TraceContext()
	saw[m.Identity.ID] = seen{trace.SpanContextFromContext(ctx).SpanID().String(), fmt.Sprintf("%x", at.SpanID)}
	if strings.HasSuffix(m.Identity.ID, "2") {
		return semel.Permanent(errors.New(secret))
	}
	return tx.Add("applied", 1)
}

// recordSpans lets a consumer apply messages, and returns the ended spans by name.
func recordSpans(t *testing.T, root sdktrace.Sampler, messages ...*semel.Message) map[string][]tracetest.SpanStub {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithSampler(sdktrace.ParentBased(root)))
	run(t, []semel.Observer{otel.NewTracer(provider, "kafka")}, messages...)
	out := map[string][]tracetest.SpanStub{}
	for _, s := range exporter.GetSpans() {
		out[s.Name] = append(out[s.Name], s)
		if text := fmt.Sprintf("%+v", s); strings.Contains(text, secret) {
			t.Errorf("a span contains the secret of its message: %s", text)
		}
	}
	return out
}

func attributes(s tracetest.SpanStub) map[string]string {
	out := map[string]string{}
	for _, a := range s.Attributes {
		out[string(a.Key)] = a.Value.String()
	}
	return out
}

func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestSpansOfMessages(t *testing.T) {
	bubble(t, "K4_a_sampled_messages_span_is_a_child_in_its_own_trace_and_links_to_its_batch", func(t *testing.T) {
		all := recordSpans(t, sdktrace.AlwaysSample(), tracedMessage(1, "01"), tracedMessage(3, "01"))
		batch := all["batch billing"]
		if len(batch) != 1 || batch[0].Parent.IsValid() || len(batch[0].Links) != 0 || attributes(batch[0])["messaging.batch.message_count"] != "2" || attributes(batch[0])["end"] != "committed" {
			t.Fatalf("batches: %+v", batch)
		}
		for i, s := range all["process billing"] {
			want := fmt.Sprintf("%032x", 2*i+1)
			if s.SpanContext.TraceID().String() != want || s.Parent.SpanID().String() != "0000000000000abc" || !s.Parent.IsRemote() || s.SpanContext.TraceState().String() != "vendor=x" || s.SpanKind != trace.SpanKindConsumer {
				t.Errorf("message %d: %+v", i, s)
			}
			if len(s.Links) != 1 || !s.Links[0].SpanContext.Equal(batch[0].SpanContext) {
				t.Errorf("message %d links to %+v", i, s.Links)
			}
			if a := attributes(s); a["consumer"] != "billing" || a["source"] != "kafka" || a["ending"] != "applied" || a["reason"] != "" || len(a) != 3 {
				t.Errorf("message %d: %v", i, a)
			}
			id := fmt.Sprintf("%s-%d", secret, 2*i+1)
			if own := s.SpanContext.SpanID().String(); saw[id].span != own || saw[id].message != own {
				t.Errorf("the handler of message %d saw %+v, not %s", i, saw[id], own)
			}
		}
		if len(all["process billing"]) != 2 {
			t.Errorf("%d spans of messages", len(all["process billing"]))
		}
	})
	bubble(t, "K4_sampling_is_the_parents", func(t *testing.T) {
		if all := recordSpans(t, sdktrace.AlwaysSample(), tracedMessage(1, "00"), tracedMessage(3, "")); len(all) != 0 {
			t.Errorf("nothing is sampled, but there are the spans %v", all)
		}
		if all := recordSpans(t, sdktrace.AlwaysSample(), tracedMessage(1, "01"), tracedMessage(3, "00")); len(all["process billing"]) != 1 {
			t.Errorf("one message is sampled, and there are the spans %v", all)
		}
	})
	bubble(t, "K4_a_batch_that_is_not_recorded_is_not_linked_to", func(t *testing.T) {
		all := recordSpans(t, sdktrace.NeverSample(), tracedMessage(1, "01"))
		if s := all["process billing"]; len(all) != 1 || len(s) != 1 || len(s[0].Links) != 0 {
			t.Errorf("%+v", all)
		}
	})
	bubble(t, "K4_a_failure_and_why_a_message_was_set_aside_are_told_without_their_text", func(t *testing.T) {
		all := recordSpans(t, sdktrace.AlwaysSample(), tracedMessage(2, "01"))
		s := all["process billing"]
		if len(s) != 2 || s[0].Status.Code != codes.Error || attributes(s[0])["ending"] != "rolled back" || attributes(s[1])["ending"] != "parked" || attributes(s[1])["reason"] != "permanent failure" || s[1].Status.Code != codes.Unset {
			t.Errorf("%+v", s)
		}
	})
	bubble(t, "K4_a_batch_of_a_thousand_has_no_link_and_each_message_one", func(t *testing.T) {
		var messages []*semel.Message
		for i := range 1000 {
			messages = append(messages, tracedMessage(10*i+1, "01"))
		}
		all := recordSpans(t, sdktrace.AlwaysSample(), messages...)
		for _, b := range all["batch billing"] {
			if len(b.Links) != 0 || b.EndTime.Before(b.StartTime) || time.Since(b.StartTime) > time.Minute {
				t.Errorf("%+v", b)
			}
		}
		for _, s := range all["process billing"] {
			if len(s.Links) != 1 {
				t.Errorf("%d links", len(s.Links))
			}
		}
		if len(all["process billing"]) != 1000 {
			t.Errorf("%d spans", len(all["process billing"]))
		}
	})
}
