package kafka

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/kafka/internal/deadletter"
	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// readDeadLetters returns the first n records of the topic for dead letters.
func readDeadLetters(t testing.TB, brokers []string, n int) []*kgo.Record {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics("letters"), kgo.DisableClientMetrics())
	must(t, err)
	defer c.Close()
	var all []*kgo.Record
	for len(all) < n {
		fetches := c.PollFetches(t.Context())
		must(t, fetches.Err())
		all = append(all, fetches.Records()...)
	}
	return all
}

func lettersWritten(t testing.TB, c *kgo.Client) int64 {
	t.Helper()
	ends, err := kadm.NewClient(c).ListEndOffsets(t.Context(), "letters")
	must(t, err)
	end, _ := ends.Lookup("letters", 0)
	return end.Offset
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return "(none)"
}

func TestADeadLetterIsACopyThatSaysWhy(t *testing.T) {
	config, c := setUp(t)
	config.DeadLetters, config.Format = "letters", CloudEvents
	event := `{"specversion":"1.0","id":"e-1","source":"/shop","data":1}`
	original := []*kgo.Record{
		{Topic: "orders", Key: []byte("k"), Value: []byte(event), Headers: []kgo.RecordHeader{
			{Key: "content-type", Value: []byte(message.MediaEvent)}, {Key: "ce_id", Value: []byte("x")}, {Key: "traceparent", Value: []byte("00-1")},
			{Key: HeaderReason, Value: []byte("of an earlier life")},
		}},
		{Topic: "orders"},
	}
	must(t, c.ProduceSync(t.Context(), original...).FirstErr())
	r := read(t, config)
	must(t, r.Info().DeadLetters("billing"))
	got := r.take(2)
	dead := []source.Settlement{
		{Delivery: &got[0], Kind: semel.DeadLetter, Reason: semel.ReasonExhausted, Attempts: 10, Err: errors.New("no such \xff account " + strings.Repeat("x", 2000))},
		{Delivery: &got[1], Kind: semel.DeadLetter, Reason: semel.ReasonNoIdentity},
	}
	left, err := r.Settle(t.Context(), dead)
	if err != nil || len(left) > 0 {
		t.Fatalf("left %v: %v", left, err)
	}
	all := readDeadLetters(t, config.Brokers, 2)
	first := all[0]
	t.Run("G3_key_value_and_headers_are_kept_and_the_reason_is_added", func(t *testing.T) {
		if string(first.Key) != "k" || string(first.Value) != event || header(first, "ce_id") != "x" || header(first, "traceparent") != "00-1" || header(first, "content-type") != message.MediaEvent {
			t.Errorf("the copy is %+v", first)
		}
		for name, want := range map[string]string{
			HeaderReason: string(semel.ReasonExhausted), HeaderAttempts: "10", HeaderConsumer: "billing",
			HeaderTopic: "orders", HeaderPartition: "0", HeaderOffset: "0", HeaderWas + "reason": "of an earlier life",
		} {
			if have := header(first, name); have != want {
				t.Errorf("header %s is %q, not %q", name, have, want)
			}
		}
		if text := header(first, HeaderError); !strings.HasPrefix(text, "no such \uFFFD account xx") || len(text) > deadletter.MostError+10 {
			t.Errorf("the error's text is %q", text)
		}
		if len(first.Headers) != 4+8 {
			t.Errorf("headers %v", first.Headers)
		}
	})
	if all[1].Value != nil || all[1].Key != nil {
		t.Errorf("a null value became %q, its key %q", all[1].Value, all[1].Key)
	}
	t.Run("trap_T48_the_original_stays_unsettled_until_its_ack", func(t *testing.T) {
		wantOffset(t, c, 0, -1)
		if left, err := r.Settle(t.Context(), dead); err != nil || len(left) > 0 || lettersWritten(t, c) != 2 {
			t.Errorf("a second try left %v: %v, and there are %d letters", left, err, lettersWritten(t, c))
		}
		r.ack(got...)
		wantOffset(t, c, 0, 2)
	})
}

func TestADeadLetterThatCannotBeWrittenIsLeft(t *testing.T) {
	t.Run("without a topic", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, "0")
		r := read(t, config)
		if err := r.Info().DeadLetters("billing"); err == nil || !strings.Contains(err.Error(), "Config.DeadLetters") {
			t.Errorf("it says: %v", err)
		}
		left, err := r.Settle(t.Context(), settlements(semel.DeadLetter, r.take(1)))
		if len(left) != 1 || !errors.Is(err, semel.ErrUnsupported) {
			t.Errorf("left %v: %v", left, err)
		}
	})
	t.Run("too large for the topic, whatever is cut", func(t *testing.T) {
		c, config, p := startBrokers(t)
		put(t, p, "orders", 0, "0", "1")
		r := read(t, withLetters(config))
		got := r.take(2)
		var takes atomic.Bool
		c.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			return refusedProduce(request.(*kmsg.ProduceRequest), kerr.MessageTooLarge), nil, !takes.Load()
		})
		both := settlements(semel.DeadLetter, got)
		both[1].Kind = semel.Ack
		left, err := r.Settle(t.Context(), both)
		if len(left) != 1 || left[0] != 0 || err == nil || !strings.Contains(err.Error(), "max.message.bytes") || !strings.Contains(err.Error(), "offset 0") {
			t.Errorf("left %v: %v", left, err)
		}
		takes.Store(true)
		if left, err := r.Settle(t.Context(), both[:1]); len(left) > 0 || err != nil || lettersWritten(t, p) != 1 {
			t.Errorf("the next try left %v: %v", left, err)
		}
	})
	t.Run("I4_dead_letters_are_idempotent_and_acknowledged_by_all_replicas", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, "0")
		r := read(t, config)
		r.take(1)
		if off, _ := r.brokers.client().OptValue(kgo.DisableIdempotentWrite).(bool); off || r.brokers.client().OptValue(kgo.RequiredAcks) != kgo.AllISRAcks() {
			t.Errorf("not idempotent: %v; acks %v", off, r.brokers.client().OptValue(kgo.RequiredAcks))
		}
	})
}

func TestTheTopicForDeadLettersIsWrittenAndNotRead(t *testing.T) {
	t.Run("I0_who_may_not_use_it_hears_of_WRITE", func(t *testing.T) {
		config, _ := setUp(t)
		config.DeadLetters = "letters"
		r := read(t, config)
		denied := kmsg.NewMetadataResponseTopic()
		denied.ErrorCode = kerr.TopicAuthorizationFailed.Code
		for topic, want := range map[string]string{"letters": "may not write dead letters to topic letters; allow it WRITE and DESCRIBE", "orders": "may not read topic orders; allow it READ and DESCRIBE"} {
			denied.Topic = &topic
			if err := r.topics.note(1, []kmsg.MetadataResponseTopic{denied}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("it says %v", err)
			}
		}
	})
}

func refusedProduce(request *kmsg.ProduceRequest, code *kerr.Error) *kmsg.ProduceResponse {
	response := request.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range request.Topics {
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			partition := kmsg.NewProduceResponseTopicPartition()
			partition.Partition, partition.ErrorCode = p.Partition, code.Code
			topic.Partitions = append(topic.Partitions, partition)
		}
		response.Topics = append(response.Topics, topic)
	}
	return response
}

func sameHeader(a, b semel.Header) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) }

// setAside reads the only record of a topic, and returns the message of the record and the dead letter that was written
// for the record.
func setAside(t *testing.T, c Config) (*semel.Message, Letter) {
	t.Helper()
	r := read(t, c)
	must(t, r.Info().DeadLetters(c.Group))
	got := r.take(1)
	dead := []source.Settlement{{Delivery: &got[0], Kind: semel.DeadLetter, Reason: semel.ReasonExhausted, Attempts: 3, Err: errors.New("no account")}}
	if left, err := r.Settle(t.Context(), dead); err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	all := readLetters(t, c)
	if len(all) != 1 {
		t.Fatalf("%d letters", len(all))
	}
	return got[0].Message, all[0]
}

// In a chain of consumers, each consumer reads the dead letters of the previous consumer. Each consumer must recognise
// the original message.
func TestALetterOfALetter(t *testing.T) {
	topics := []string{"orders", "dead1", "dead2", "dead3", "dead4", "dead5", "dead6"}
	cluster := cluster(t, kfake.SeedTopics(1, topics...))
	record := &kgo.Record{Topic: "orders", Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{
		{Key: "ce_id", Value: []byte("x")}, {Key: "semel-was-mine", Value: []byte("the producer's")}, {Key: HeaderLength + "s", Value: []byte("1")},
	}}
	must(t, newProducer(t, cluster.ListenAddrs()).ProduceSync(t.Context(), record).FirstErr())
	for n, from := range topics[:len(topics)-1] {
		was, letter := setAside(t, quiet(Config{Brokers: cluster.ListenAddrs(), Topics: []string{from}, Group: "of-" + from, DeadLetters: topics[n+1]}))
		m := letter.Delivery.Message
		t.Run("I5_the_message_is_as_its_consumer_got_it/"+from, func(t *testing.T) {
			if letter.Foreign || m.ID() != "x" || m.Topic != from || m.Origin.Offset != was.Origin.Offset || string(m.Key) != "k" || string(m.Body) != "v" {
				t.Errorf("it is %+v, and was %+v", m, was)
			}
			if n <= deadletter.MostWas && !slices.EqualFunc(m.Headers, was.Headers, sameHeader) {
				t.Errorf("its headers are\n%v, and were\n%v", m.Headers, was.Headers)
			}
		})
		t.Run("I5_the_first_origin_is_kept_for_four_letters/"+from, func(t *testing.T) {
			if n == 0 {
				return // the first message is no dead letter
			}
			origin, kept := m.Headers.Get("semel-" + strings.Repeat("was-", n-1) + "topic")
			if kept != (n <= deadletter.MostWas) || kept && string(origin) != "orders" {
				t.Errorf("it says %q: %v", origin, m.Headers)
			}
		})
	}
}

// lettersConfirmed controls the brokers' answers to dead letters. If the returned value is true, the answer is a
// confirmation. If it is false, the answer is the error that too few replicas have the records.
func (w *world) lettersConfirmed() *atomic.Bool {
	confirmed, id := new(atomic.Bool), w.cluster.TopicInfo("letters").TopicID
	w.control(kmsg.Produce, func(request kmsg.Request) kmsg.Response {
		produce := request.(*kmsg.ProduceRequest)
		if t := produce.Topics[0]; confirmed.Load() || t.TopicID != id && t.Topic != "letters" {
			return nil
		}
		return refusedProduce(produce, kerr.NotEnoughReplicas)
	})
	return confirmed
}

// worst is a handler that returns a permanent error for one message.
func worst(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
	if m.Identity.ID == "worst" {
		return semel.Permanent(errDead)
	}
	return count(ctx, tx, m)
}

func TestDeadLettersThatNobodyConfirms(t *testing.T) {
	bubble(t, "G3_the_acks_of_other_lanes_do_not_wait_and_it_is_said", func(t *testing.T) {
		w := newWorld(t, 2, kfake.SeedTopics(1, "letters"))
		confirmed := w.lettersConfirmed()
		w.publish(0, "worst", "follower")
		p := w.start(worst, func(c *Config) { c.DeadLetters = "letters" }, func(c *settings) { c.Retry.OnExhausted = consumer.ActionDeadLetter })
		w.waitUntil(time.Minute, "the consumer says that the dead letter is not confirmed", func() bool {
			_, why := p.consumer.Ready()
			return strings.Contains(why, "the brokers have not confirmed it")
		})
		for n := range int64(10) {
			w.publish(1, numberedIDs("other", int(n), int(n))...)
			w.waitUntil(10*time.Second, "the other lane is settled", func() bool { return w.committedOffset(1) == n+1 })
		}
		if at := w.committedOffset(0); at > 0 || w.effect("follower") > 0 {
			t.Errorf("the dead letter is not confirmed, its lane is committed up to %d, and its follower has %d effects", at, w.effect("follower"))
		}
		confirmed.Store(true)
		w.waitCommitted(time.Minute)
		w.expectOnce(append(numberedIDs("other", 0, 9), "follower")...)
		if ready, why := p.consumer.Ready(); !ready {
			t.Errorf("all is settled, and it is not ready: %s", why)
		}
		if n := w.cluster.PartitionInfo("letters", 0).HighWatermark; n != 1 {
			t.Errorf("there are %d dead letters", n)
		}
	})
}
