package kafka

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// set up makes a cluster with one topic of one partition, and a producer.
func setUp(t testing.TB, options ...kfake.Opt) (Config, *kgo.Client) {
	t.Helper()
	c := cluster(t, append([]kfake.Opt{kfake.SeedTopics(1, "orders", "letters")}, options...)...)
	return Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing"}, newProducer(t, c.ListenAddrs())
}

func TestOffsetsAreAContiguousPrefixOfWhatWasDelivered(t *testing.T) {
	t.Run("trap_33_what_ends_out_of_order_is_committed_up_to_the_gap", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, "0", "1", "2", "3", "4")
		r := read(t, config)
		got := r.take(5)
		r.ack(got[3], got[1])
		if at := offset(t, c, "billing", "orders", 0); at != -1 {
			t.Fatalf("nothing before a gap is settled, and the group's offset is %d", at)
		}
		r.ack(got[0])
		if at := offset(t, c, "billing", "orders", 0); at != 2 {
			t.Fatalf("0 and 1 are settled, and the group's offset is %d", at)
		}
		r.ack(got[2])
		if at := offset(t, c, "billing", "orders", 0); at != 4 {
			t.Fatalf("0 to 3 are settled, and the group's offset is %d", at)
		}
		r.close()
		wants(t, read(t, config).take(1), "4")
	})
	t.Run("trap_25_settling_a_later_message_passes_over_no_earlier_one", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, "0", "1")
		r := read(t, config)
		r.ack(r.take(2)[1])
		r.close()
		wants(t, read(t, config).take(2), "0", "1")
	})
	t.Run("trap_34_gaps_of_aborted_records_and_markers_are_passed_over", func(t *testing.T) {
		config, c := setUp(t)
		transaction(t, config, "aborted", kgo.TryAbort)
		put(t, c, "orders", 0, "a")
		transaction(t, config, "b", kgo.TryCommit)
		r := read(t, config)
		got := r.take(2)
		wants(t, got, "a", "b")
		r.ack(got...)
		t.Run("trap_35_the_lag_reaches_zero_behind_a_marker_at_the_end", func(t *testing.T) {
			stop := r.keepFetching(func([]source.Delivery) {})
			defer stop()
			ends, err := kadm.NewClient(c).ListEndOffsets(t.Context(), "orders")
			if err != nil {
				t.Fatal(err)
			}
			end, _ := ends.Lookup("orders", 0)
			awaitOffset(t, c, "billing", "orders", 0, end.Offset)
		})
	})
	t.Run("trap_40_aborted_records_are_not_delivered_unless_asked_for", func(t *testing.T) {
		config, c := setUp(t)
		transaction(t, config, "aborted", kgo.TryAbort)
		put(t, c, "orders", 0, "a")
		wants(t, read(t, config).take(1), "a")
		config.Group, config.ReadUncommitted = "auditing", true
		wants(t, read(t, config).take(2), "aborted", "a")
	})
}

// transaction writes one value in a transaction that ends as it is told.
func transaction(t testing.TB, config Config, value string, end kgo.TransactionEndTry) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(config.Brokers...), kgo.TransactionalID("producer-"+value), kgo.DisableClientMetrics())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.BeginTransaction()
	if err == nil {
		err = c.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte(value)}).FirstErr()
	}
	if err == nil {
		err = c.EndTransaction(t.Context(), end)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestARecordBecomesTheMessageThatItIs(t *testing.T) {
	config, c := setUp(t)
	headers := []kgo.RecordHeader{{Key: "ce_id", Value: []byte("e-1")}, {Key: "ce_source", Value: []byte("/shop")}, {Key: "note", Value: []byte("1")}, {Key: "note", Value: []byte("2")}}
	records := []*kgo.Record{
		{Topic: "orders", Value: []byte("body"), Headers: headers},
		{Topic: "orders", Key: []byte{}, Value: []byte{}, Headers: headers[3:]},
		{Topic: "orders", Key: []byte("k")},
	}
	if err := c.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	got := read(t, config).take(3)
	m := got[0].Message
	if m.Key != nil || m.ID() != "e-1" || m.Source() != "/shop" || m.Topic != "orders" || m.Origin.Partition != 0 || m.Origin.Offset != 0 || got[0].Before != source.Unknown {
		t.Errorf("message %+v, before %d", m, got[0].Before)
	}
	if len(m.Headers) != 4 || m.Headers[2].Name != "note" || string(m.Headers[3].Value) != "2" {
		t.Errorf("headers %v", m.Headers)
	}
	if id := m.Origin.BrokerID; !strings.HasSuffix(id, "/0/0") || len(id) != len("/0/0")+22 {
		t.Errorf("the broker's id is %q, not topic id, partition and offset", id)
	}
	if m := got[1].Message; m.Key == nil || len(m.Headers) != 1 || m.Body == nil {
		t.Errorf("empty key and value came as %+v", m)
	}
	if v, found := got[2].Message.Headers.Get(HeaderTombstone); !found || string(v) != "true" || len(got[2].Message.Body) != 0 {
		t.Errorf("a null value came as %+v", got[2].Message)
	}
}

func TestEventsInStructuredModeAreOpened(t *testing.T) {
	config, c := setUp(t)
	config.Format = CloudEvents
	kind := kgo.RecordHeader{Key: "Content-Type", Value: []byte("application/CloudEvents+json; charset=utf-8")}
	event := `{"specversion":"1.0","id":"e-1","source":"/shop","type":"paid","data":{"amount":1.0}}`
	records := []*kgo.Record{
		{Topic: "orders", Value: []byte(event), Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte("other")}, kind, {Key: "traceparent", Value: []byte("00")}}},
		{Topic: "orders", Value: []byte(`{"id":`), Headers: []kgo.RecordHeader{kind}},
		{Topic: "orders", Value: []byte(`[]`), Headers: []kgo.RecordHeader{{Key: "content-type", Value: []byte("application/cloudevents-batch+json")}}},
		{Topic: "orders", Value: []byte("x"), Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte("e-2")}}},
		{Topic: "orders", Headers: []kgo.RecordHeader{kind}},
	}
	if err := c.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	got := read(t, config).take(5)
	m := got[0].Message
	if m.ID() != "e-1" || m.Type() != "paid" || string(m.Body) != `{"amount":1.0}` || got[0].Refused != "" {
		t.Errorf("the event came as %+v", m)
	}
	if _, found := m.Headers.Get("content-type"); found {
		t.Error("the content-type is of the envelope, not of the body")
	}
	if v, _ := m.Headers.Get("traceparent"); string(v) != "00" {
		t.Error("a header of the record is gone")
	}
	t.Run("trap_17_a_malformed_event_is_refused_with_its_raw_bytes", func(t *testing.T) {
		for _, d := range got[1:3] {
			if d.Refused != semel.ReasonMalformed || d.Detail == "" || len(d.Message.Body) == 0 {
				t.Errorf("refused %q, %q, body %q", d.Refused, d.Detail, d.Message.Body)
			}
		}
		wants(t, got[1:2], `{"id":`)
	})
	if m := got[3].Message; m.ID() != "e-2" || string(m.Body) != "x" {
		t.Errorf("an event in binary mode came as %+v", m)
	}
	if _, found := got[4].Message.Headers.Get(HeaderTombstone); !found || got[4].Refused != "" {
		t.Errorf("a null value came as %+v, %q", got[4].Message, got[4].Refused)
	}
}

func TestARecordThatIsTooLargeIsRefusedWithItsBeginning(t *testing.T) {
	t.Run("trap_82_the_limit_of_a_record_is_checked_first", func(t *testing.T) {
		config, c := setUp(t)
		config.MaxRecord = 64 << 10
		long := bytes.Repeat([]byte("x"), 64<<10+1)
		if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: long}, &kgo.Record{Topic: "orders", Value: long[1:]}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		got := read(t, config).take(2)
		length, _ := got[0].Message.Headers.Get(HeaderLength)
		if got[0].Refused != semel.ReasonTooLarge || len(got[0].Message.Body) != 64<<10 || string(length) != "65537" {
			t.Errorf("refused %q, body of %d bytes, length %q", got[0].Refused, len(got[0].Message.Body), length)
		}
		if got[1].Refused != "" {
			t.Errorf("a record of exactly the limit was refused: %s", got[1].Detail)
		}
	})
}

func TestEveryFaultOfAConfigurationIsReportedAtOnce(t *testing.T) {
	_, err := New(Config{
		Brokers: []string{"localhost"}, Topics: []string{"a b", "x", "x"}, DeadLetters: "x",
		Start: Start{Now: true, At: time.Now()}, MaxRecord: 1, RevokeTimeout: time.Hour, SessionTimeout: time.Millisecond, Format: 9,
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{
		`broker "localhost" is no host:port`, `topic "a b" has a character`, `"x" is named twice`, `dead letters would go to "x"`,
		"Group is empty", "more than one place", "MaxRecord is 1 ", "RevokeTimeout is 1h", "SessionTimeout is 1ms", "format 9",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("it does not say %q: %v", part, err)
		}
	}
	if _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "Brokers") || !strings.Contains(err.Error(), "Topics") {
		t.Errorf("an empty configuration: %v", err)
	}
	if _, err := New(Config{Brokers: []string{"a:1"}, Topics: []string{"x"}, Group: "g", Start: Start{Group: "g"}}); err == nil {
		t.Error("a start at the group's own offsets was accepted")
	}
}

func TestWhatIsWrongWithTheBrokersIsSaidByFetch(t *testing.T) {
	t.Parallel()
	t.Run("nobody listens", func(t *testing.T) {
		r := read(t, Config{Brokers: []string{"127.0.0.1:1"}, Topics: []string{"orders"}, Group: "billing"})
		if err := r.fails(); !strings.Contains(err.Error(), "127.0.0.1:1") || !strings.Contains(err.Error(), "refused") {
			t.Errorf("it says: %v", err)
		}
	})
	t.Run("the topic does not exist", func(t *testing.T) {
		config, _ := setUp(t)
		config.Topics = []string{"orders", "odrers"}
		r := read(t, config)
		for range 2 { // and again
			err := r.fails()
			if !strings.Contains(err.Error(), "topic odrers does not exist") {
				t.Errorf("it says: %v", err)
			}
			if decided := (*semel.HandlerError)(nil); !errors.As(err, &decided) || decided.Decision != semel.DecidePermanent {
				t.Errorf("it does not say that waiting cannot mend it: %v", err)
			}
		}
	})
	t.Run("the source is closed", func(t *testing.T) {
		config, _ := setUp(t)
		r := read(t, config)
		r.close()
		if _, err := r.Fetch(t.Context(), wide); !errors.Is(err, semel.ErrClosed) {
			t.Errorf("it says: %v", err)
		}
	})
}
