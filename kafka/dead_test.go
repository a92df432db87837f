package kafka

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/deadletter"
	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// letters are the first n records of the topic for dead letters.
func letters(t testing.TB, brokers []string, n int) []*kgo.Record {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics("letters"), kgo.DisableClientMetrics())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var all []*kgo.Record
	for len(all) < n {
		fetches := c.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		all = append(all, fetches.Records()...)
	}
	return all
}

func lettersWritten(t testing.TB, c *kgo.Client) int64 {
	t.Helper()
	ends, err := kadm.NewClient(c).ListEndOffsets(t.Context(), "letters")
	if err != nil {
		t.Fatal(err)
	}
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
	if err := c.ProduceSync(t.Context(), original...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	r := read(t, config)
	if err := r.Info().DeadLetters("billing"); err != nil {
		t.Fatal(err)
	}
	got := r.take(2)
	dead := []source.Settlement{
		{Delivery: &got[0], Kind: semel.DeadLetter, Reason: semel.ReasonExhausted, Attempts: 10, Err: errors.New("no such \xff account " + strings.Repeat("x", 2000))},
		{Delivery: &got[1], Kind: semel.DeadLetter, Reason: semel.ReasonNoIdentity},
	}
	left, err := r.Settle(t.Context(), dead)
	if err != nil || len(left) > 0 {
		t.Fatalf("left %v: %v", left, err)
	}
	all := letters(t, config.Brokers, 2)
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
		if at := offset(t, c, "billing", "orders", 0); at != -1 {
			t.Errorf("the group's offset is %d before the ack", at)
		}
		if left, err := r.Settle(t.Context(), dead); err != nil || len(left) > 0 || lettersWritten(t, c) != 2 {
			t.Errorf("a second try left %v: %v, and there are %d letters", left, err, lettersWritten(t, c))
		}
		r.ack(got...)
		if at := offset(t, c, "billing", "orders", 0); at != 2 {
			t.Errorf("the group's offset is %d after the ack", at)
		}
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
		c := cluster(t, kfake.SeedTopics(1, "orders", "letters"))
		p := newProducer(t, c.ListenAddrs())
		put(t, p, "orders", 0, "0", "1")
		r := read(t, Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", DeadLetters: "letters"})
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
