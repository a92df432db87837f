package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// newPaidMessage returns the message that a handler gets for a CloudEvent with the given id.
func newPaidMessage(id string) *semel.Message {
	m := semel.NewMessage(semel.Key{Consumer: "billing", Source: "shop", ID: id}, []byte("paid "+id))
	m.Key = []byte("key")
	return m
}

// publisher returns a publisher with a network connection (wire) of its own.
func (w *world) publisher(change func(*PublisherConfig)) (*Publisher, *wire) {
	w.t.Helper()
	c := PublisherConfig{Brokers: w.cluster.ListenAddrs(), Topic: theTopic, Logger: quiet(Config{}).Logger}
	if change != nil {
		change(&c)
	}
	p, err := NewPublisher(c)
	must(w.t, err)
	wire := newWire(&w.network, w.latency)
	w.wires = append(w.wires, wire)
	p.dialWith(wire.dial)
	w.t.Cleanup(func() {
		wire.thaw()
		p.Close()
	})
	return p, wire
}

// readIDs returns the ids of a topic's records in order.
func (w *world) readIDs(topic string) []string {
	w.t.Helper()
	var all []string
	for _, r := range w.readRecords(topic) {
		all = append(all, header(r, "ce_id"))
	}
	return all
}

// wantIDs fails unless the records of the topic have the given ids, in the same order.
func (w *world) wantIDs(ids string) {
	w.t.Helper()
	if all := strings.Join(w.readIDs(theTopic), " "); all != ids {
		w.t.Errorf("the records are %v", all)
	}
}

func (w *world) readRecords(topic string) []*kgo.Record {
	w.t.Helper()
	count := int64(0)
	for _, p := range w.cluster.PartitionInfos(topic) {
		count += p.HighWatermark
	}
	c := w.client(kgo.ConsumeTopics(topic))
	defer c.Close()
	var all []*kgo.Record
	for int64(len(all)) < count {
		all = append(all, c.PollFetches(context.Background()).Records()...)
	}
	return all
}

// decision returns the decision of a consumer after an error.
func decision(err error) semel.Decision {
	var e *semel.HandlerError
	if errors.As(err, &e) {
		return e.Decision
	}
	return 0
}

// wantError checks the decision and the text of an error.
func wantError(t *testing.T, err error, want semel.Decision, words ...string) {
	t.Helper()
	if err == nil || decision(err) != want {
		t.Fatalf("%v is %v, not %v", err, decision(err), want)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
}

func TestAPublishedMessageIsWrittenBeforeTheHandlerReturns(t *testing.T) {
	inWorld(t, "E2_one_record_with_the_id_of_the_message", 1, func(t *testing.T, w *world) {
		p, _ := w.publisher(nil)
		for _, id := range []string{"a", "b"} {
			must(t, p.Publish(t.Context(), newPaidMessage(id)))
			if all := w.readIDs(theTopic); all[len(all)-1] != id {
				t.Errorf("the last record of %v is not %s", all, id)
			}
		}
	})
	inWorld(t, "I4_the_client_is_idempotent_and_waits_for_all_replicas", 1, func(t *testing.T, w *world) {
		p, _ := w.publisher(nil)
		writer, err := p.openProducer()
		must(t, err)
		for _, c := range []*kgo.Client{writer.Batches, writer.Alone} {
			if off, _ := c.OptValue(kgo.DisableIdempotentWrite).(bool); off || c.OptValue(kgo.RequiredAcks) != kgo.AllISRAcks() {
				t.Errorf("not idempotent: %v; acks %v", off, c.OptValue(kgo.RequiredAcks))
			}
		}
	})
	inWorld(t, "what_workers_publish_while_a_batch_is_on_its_way_is_one_batch", 1, func(t *testing.T, w *world) {
		w.latency = 10 * time.Millisecond
		p, _ := w.publisher(nil)
		must(t, p.Publish(t.Context(), newPaidMessage("first")))
		requests := countWrites(w.cluster)
		began := time.Now()
		var all sync.WaitGroup
		for n := range 64 {
			all.Go(func() {
				if err := p.Publish(t.Context(), newPaidMessage(fmt.Sprint(n))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); requests.Load() > 8 || took > 200*time.Millisecond {
			t.Errorf("%d requests for 64 records, in %v", requests.Load(), took)
		}
	})
}

func TestBrokersThatDoNotConfirm(t *testing.T) {
	inWorld(t, "E3_frozen_after_it_was_sent_the_outcome_is_unknown_and_no_second_record_is_written_by_this_process", 1, func(t *testing.T, w *world) {
		p, wire := w.publisher(nil)
		must(t, p.Publish(t.Context(), newPaidMessage("before")))
		wire.freeze()
		for range 3 {
			wantError(t, p.Publish(t.Context(), newPaidMessage("a")), semel.DecideUnknown, "the outcome of publishing to topic orders is not known", "within 10s", "another attempt publishes it with the same id")
		}
		wire.thaw()
		must(t, p.Publish(t.Context(), newPaidMessage("a")))
		w.wantIDs("before a")
	})
	inWorld(t, "one_that_was_confirmed_while_nobody_waited_is_not_written_again", 1, func(t *testing.T, w *world) {
		p, wire := w.publisher(nil)
		must(t, p.Publish(t.Context(), newPaidMessage("before")))
		wire.freeze()
		wantError(t, p.Publish(t.Context(), newPaidMessage("a")), semel.DecideUnknown, "is not known")
		wire.thaw()
		pass(time.Minute)
		must(t, p.Publish(t.Context(), newPaidMessage("a")))
		w.wantIDs("before a")
	})
	inWorld(t, "away_from_the_start_nothing_was_sent_and_nothing_comes_later", 1, func(t *testing.T, w *world) {
		p, wire := w.publisher(nil)
		wire.freeze()
		wantError(t, p.Publish(t.Context(), newPaidMessage("a")), semel.DecideRetry, "nothing was sent to topic orders", "within 10s")
		wire.thaw()
		pass(time.Minute)
		must(t, p.Publish(t.Context(), newPaidMessage("b")))
		w.wantIDs("b")
	})
	inWorld(t, "a_call_that_is_ended_says_so", 1, func(t *testing.T, w *world) {
		p, wire := w.publisher(nil)
		wire.freeze()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantError(t, p.Publish(ctx, newPaidMessage("a")), semel.DecideRetry, "nothing was sent", "the caller ended the call")
	})
	inWorld(t, "a_topic_made_anew_is_written_to", 1, func(t *testing.T, w *world) {
		p, _ := w.publisher(nil)
		must(t, p.Publish(t.Context(), newPaidMessage("a")))
		w.recreateTopic(1)
		for tries := 0; ; tries++ {
			err := p.Publish(t.Context(), newPaidMessage("b"))
			if err == nil {
				break
			}
			if wantError(t, err, semel.DecideRetry); tries > 3 {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		w.wantIDs("b")
	})
	inWorld(t, "closed_it_publishes_nothing_and_waiting_calls_end", 1, func(t *testing.T, w *world) {
		p, wire := w.publisher(nil)
		wire.freeze()
		ended := make(chan error)
		go func() { ended <- p.Publish(t.Context(), newPaidMessage("a")) }()
		pass(time.Second)
		p.Close()
		wantError(t, <-ended, semel.DecideRetry, "nothing was sent", "closed")
		if err := p.Publish(t.Context(), newPaidMessage("b")); !errors.Is(err, semel.ErrClosed) {
			t.Error(err)
		}
		p.Close()
	})
}

func TestWhatBrokersRefuseIsPermanent(t *testing.T) {
	for name, c := range map[string]struct {
		code *kerr.Error
		says string
	}{
		"not_allowed":           {kerr.TopicAuthorizationFailed, "allow it WRITE"},
		"not_allowed_any_topic": {kerr.ClusterAuthorizationFailed, "allow it WRITE"},
		"too_large":             {kerr.MessageTooLarge, "max.message.bytes"},
		"without_a_key":         {kerr.InvalidRecord, "compacted"},
		"of_another_time":       {kerr.InvalidTimestamp, "clock"},
	} {
		inWorld(t, name+"_and_what_is_allowed_later_is_written", 1, func(t *testing.T, w *world) {
			p, _ := w.publisher(nil)
			var takes atomic.Bool
			w.cluster.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
				w.cluster.KeepControl()
				return refusedProduce(request.(*kmsg.ProduceRequest), c.code), nil, !takes.Load()
			})
			wantError(t, p.Publish(t.Context(), newPaidMessage("a")), semel.DecidePermanent, "nothing was written to topic orders", c.says)
			takes.Store(true)
			must(t, p.Publish(t.Context(), newPaidMessage("a")))
			w.wantIDs("a")
		})
	}
	inWorld(t, "a_topic_that_does_not_exist", 1, func(t *testing.T, w *world) {
		p, _ := w.publisher(func(c *PublisherConfig) { c.Topic = "ordres" })
		wantError(t, p.Publish(t.Context(), newPaidMessage("a")), semel.DecidePermanent, "topic ordres", "create it or correct its name")
	})
	bubble(t, "trap_T94_one_that_is_too_large_harms_none_beside_it", func(t *testing.T) {
		w := newWorld(t, 1, kfake.SeedTopics(1, "letters"))
		lettersTake(t, w.producer, 300_000)
		p, _ := w.publisher(func(c *PublisherConfig) { c.Topic = "letters" })
		var all sync.WaitGroup
		for n := range 40 {
			m := newPaidMessage(fmt.Sprint(n))
			m.Body = randomBytes(t, 20_000)
			if n == 20 {
				m.Body = randomBytes(t, 2_000_000)
			}
			all.Go(func() {
				if err := p.Publish(t.Context(), m); n == 20 {
					wantError(t, err, semel.DecidePermanent, "max.message.bytes")
				} else if err != nil {
					t.Error(n, err)
				}
			})
		}
		all.Wait()
		if n := len(w.readIDs("letters")); n != 39 {
			t.Errorf("%d records of 39", n)
		}
	})
}

func TestTopicsAreLookedAtBeforeAnythingIsPublished(t *testing.T) {
	inWorld(t, "those_that_do_not_exist_are_named", 1, func(t *testing.T, w *world) {
		p, _ := w.publisher(func(c *PublisherConfig) { c.TopicHeader, c.Topics = "to", []string{"ordres", "bills"} })
		if err := p.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "topic ordres: the topic does not exist") || !strings.Contains(err.Error(), "topic bills") || strings.Contains(err.Error(), theTopic) {
			t.Error(err)
		}
	})
	inWorld(t, "those_that_are_there_are_well", 1, func(t *testing.T, w *world) {
		p, _ := w.publisher(nil)
		if err := p.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
	inWorld(t, "brokers_that_are_away_are_no_fault", 1, func(t *testing.T, w *world) {
		p, wire := w.publisher(nil)
		wire.freeze()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := p.Check(ctx); err != nil {
			t.Error(err)
		}
	})
}
