package kafka

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/semelheader"
	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/semel-go/semel/kafka/internal/producer"
	"github.com/twmb/franz-go/pkg/kgo"
)

// text returns a record's headers in the form name=value.
func text(headers []kgo.RecordHeader) []string {
	var all []string
	for _, h := range headers {
		all = append(all, h.Key+"="+string(h.Value))
	}
	return all
}

func recordOf(t *testing.T, m *semel.Message, change func(*PublisherConfig)) *kgo.Record {
	t.Helper()
	c := PublisherConfig{Brokers: []string{"127.0.0.1:1"}, Topic: "out"}
	if change != nil {
		change(&c)
	}
	p, err := NewPublisher(quietly(c))
	must(t, err)
	defer p.Close()
	r, err := p.record(m)
	must(t, err)
	return r
}

func quietly(c PublisherConfig) PublisherConfig {
	c.Logger = quiet(Config{}).Logger
	return c
}

func h(name, value string) semel.Header { return semel.Header{Name: name, Value: []byte(value)} }

func TestARecordHasWhatItsMessageHad(t *testing.T) {
	event := func() *semel.Message {
		return &semel.Message{
			Identity: semel.Key{Consumer: "billing", Source: "shop", ID: "e-1"}, Key: []byte("k"), Body: []byte("{}"),
			Headers: semel.Headers{
				h("ce-specversion", "1.0"), h("ce-id", "e-1"), h("ce-source", "shop"), h("ce-type", "paid"), h("Ce-Tenant", "t"), h("ce-datacontenttype", "application/json"),
				h("traceparent", "00-1"), h(semelheader.Causation, "c-1"), h("x", "1"), h("x", "2"), h(HeaderReason, "of an earlier life"), h(HeaderWas+"topic", "of one before"),
			},
		}
	}
	t.Run("C14_an_event_keeps_id_attributes_causation_and_trace", func(t *testing.T) {
		r := recordOf(t, event(), nil)
		got := text(r.Headers)
		for _, want := range []string{"ce_specversion=1.0", "ce_id=e-1", "ce_source=shop", "ce_type=paid", "ce_tenant=t", "content-type=application/json", "traceparent=00-1", semelheader.Causation + "=c-1", "x=1", "x=2"} {
			if !slices.Contains(got, want) {
				t.Errorf("%s is missing in %v", want, got)
			}
		}
		if len(got) != 10 || string(r.Key) != "k" || string(r.Value) != "{}" || r.Topic != "out" {
			t.Errorf("%+v, %v", r, got)
		}
	})
	t.Run("C14_a_message_known_by_something_else_gets_an_id_of_that_and_its_cause", func(t *testing.T) {
		m := event()
		m.Identity = semel.Key{Consumer: "billing", ID: "order-17"}
		got := text(recordOf(t, m, nil).Headers)
		for _, want := range []string{"ce_id=" + m.OutputID("publish", "out"), "ce_source=shop", semelheader.Causation + "=order-17", semelheader.Correlation + "=order-17"} {
			if !slices.Contains(got, want) {
				t.Errorf("%s is missing in %v", want, got)
			}
		}
		if slices.Contains(got, "ce_id=e-1") || slices.Contains(got, semelheader.Causation+"=c-1") {
			t.Errorf("%v", got)
		}
		if other := text(recordOf(t, m, func(c *PublisherConfig) { c.Topic = "other" }).Headers); slices.Contains(other, "ce_id="+m.OutputID("publish", "out")) {
			t.Errorf("another topic has the same id: %v", other)
		}
	})
	t.Run("A1_an_id_of_another_source_is_not_kept", func(t *testing.T) {
		m := event()
		m.Identity.Source = "another shop" // a policy can set this source with const:another shop
		if got := text(recordOf(t, m, nil).Headers); !slices.Contains(got, "ce_id="+m.OutputID("publish", "out")) {
			t.Errorf("two different messages have the same id in the topic: %v", got)
		}
	})
	t.Run("what_is_no_event_becomes_one", func(t *testing.T) {
		m := semel.NewMessage(semel.Key{Consumer: "billing", ID: "7"}, nil)
		m.Attributes = semel.Attributes{ID: "7", Subject: "s", DataSchema: "d", Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
		r := recordOf(t, m, nil)
		want := []string{"ce_specversion=1.0", "ce_id=7", "ce_source=semel", "ce_type=semel.message", "ce_subject=s", "ce_dataschema=d", "ce_time=2026-01-02T03:04:05.000000006Z"}
		if got := text(r.Headers); !slices.Equal(got, want) {
			t.Errorf("%v", got)
		}
		if r.Value == nil || r.Key != nil {
			t.Errorf("an empty body became a null value, which deletes: %v, key %v", r.Value == nil, r.Key)
		}
	})
	t.Run("a_null_value_stays_null", func(t *testing.T) {
		m := semel.NewMessage(semel.Key{Consumer: "billing", ID: "7"}, []byte{}, h(HeaderTombstone, "true"))
		if r := recordOf(t, m, nil); r.Value != nil || strings.Contains(strings.Join(text(r.Headers), " "), HeaderTombstone) {
			t.Errorf("%+v", r)
		}
	})
	t.Run("a_whole_event_in_the_body_is_left_as_it_is", func(t *testing.T) {
		m := semel.NewMessage(semel.Key{Consumer: "billing", ID: "7"}, []byte(`{"id":"7"}`), h("content-type", message.MediaEvent))
		m.Attributes = semel.Attributes{}
		if got := text(recordOf(t, m, nil).Headers); !slices.Equal(got, []string{"content-type=" + message.MediaEvent}) {
			t.Errorf("%v", got)
		}
	})
}

func TestAMessageNamesItsTopicOnlyWhereItMay(t *testing.T) {
	p, err := NewPublisher(quietly(PublisherConfig{Brokers: []string{"127.0.0.1:1"}, TopicHeader: "destination", Topics: []string{"mails", "bills"}}))
	must(t, err)
	defer p.Close()
	named := func(topic string) *semel.Message {
		return semel.NewMessage(semel.Key{Consumer: "billing", ID: "7"}, nil, h("destination", topic))
	}
	if r, err := p.record(named("bills")); err != nil || r.Topic != "bills" {
		t.Errorf("%v %v", r, err)
	}
	wantError(t, p.Publish(t.Context(), named("other\n")), semel.DecidePermanent, `other\n`, "not in Topics")
	wantError(t, p.Publish(t.Context(), newPaidMessage("a")), semel.DecidePermanent, "no header destination")
	wantError(t, p.Publish(t.Context(), &semel.Message{}), semel.DecidePermanent, "no Identity")
}

func TestAPublisherIsRefusedWithAllItsFaults(t *testing.T) {
	for name, c := range map[string]struct {
		config PublisherConfig
		says   []string
	}{
		"nothing":       {PublisherConfig{}, []string{"Brokers is empty", "Topic and TopicHeader are empty"}},
		"no_allow_list": {PublisherConfig{Brokers: []string{"a:1"}, TopicHeader: "to"}, []string{"Topics is empty"}},
		"no_header":     {PublisherConfig{Brokers: []string{"a:1"}, Topic: "a", Topics: []string{"b"}}, []string{"TopicHeader"}},
		"no_name":       {PublisherConfig{Brokers: []string{"a"}, Topic: "a b", Timeout: -1}, []string{`"a" is not host:port`, `"a b"`, "Timeout is -1ns"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewPublisher(c.config)
			for _, word := range c.says {
				if err == nil || !strings.Contains(err.Error(), word) {
					t.Errorf("the error does not say %q: %v", word, err)
				}
			}
		})
	}
}

func TestWhatAPublisherToldIsNotRemembered(t *testing.T) {
	inWorld(t, "law_11_and_whoever_publishes_again_writes_again", 1, func(t *testing.T, w *world) {
		p, _ := w.publisher(nil)
		for range 2 {
			must(t, p.Publish(t.Context(), newPaidMessage("a")))
		}
		_, anew := p.sendings.Begin(t.Context(), producer.Publication{Identity: newPaidMessage("a").Identity, Topic: theTopic}, 0, time.Now())
		if all := w.readIDs(theTopic); strings.Join(all, " ") != "a a" || !anew {
			t.Errorf("the records are %v, and the last sending is kept: %t", all, !anew)
		}
	})
}

func TestWhatWasTakenBackWasNotSent(t *testing.T) {
	t.Run("E3_though_others_were_sent_meanwhile", func(t *testing.T) {
		p, err := NewPublisher(quietly(PublisherConfig{Brokers: []string{"127.0.0.1:1"}, Topic: theTopic}))
		must(t, err)
		defer p.Close()
		all := producer.NewSendings()
		s, _ := all.Begin(t.Context(), producer.Publication{}, p.produces.Begun()+1, time.Now())
		s.Answer(context.Canceled)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errUnconfirmed)
		wantError(t, p.judge(ctx, s, theTopic), semel.DecideRetry, "nothing was sent to topic "+theTopic)
	})
}
