package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestOffsetsAreAContiguousPrefixOfWhatWasDelivered(t *testing.T) {
	t.Run("trap_33_what_ends_out_of_order_is_committed_up_to_the_gap", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, "0", "1", "2", "3", "4")
		r := read(t, config)
		got := r.take(5)
		r.ack(got[3], got[1])
		wantOffset(t, c, 0, -1)
		r.ack(got[0])
		wantOffset(t, c, 0, 2)
		r.ack(got[2])
		wantOffset(t, c, 0, 4)
		r.close()
		expectBodies(t, read(t, config).take(1), "4")
	})
	t.Run("trap_25_settling_a_later_message_passes_over_no_earlier_one", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, "0", "1")
		r := read(t, config)
		r.ack(r.take(2)[1])
		r.close()
		expectBodies(t, read(t, config).take(2), "0", "1")
	})
	t.Run("trap_34_gaps_of_aborted_records_and_markers_are_passed_over", func(t *testing.T) {
		config, c := setUp(t)
		transaction(t, config, "aborted", kgo.TryAbort)
		put(t, c, "orders", 0, "a")
		transaction(t, config, "b", kgo.TryCommit)
		r := read(t, config)
		got := r.take(2)
		expectBodies(t, got, "a", "b")
		r.ack(got...)
		t.Run("trap_35_the_lag_reaches_zero_behind_a_marker_at_the_end", func(t *testing.T) {
			stop := r.keepFetching(func([]source.Delivery) {})
			defer stop()
			ends, err := kadm.NewClient(c).ListEndOffsets(t.Context(), "orders")
			must(t, err)
			end, _ := ends.Lookup("orders", 0)
			awaitOffset(t, c, "billing", "orders", 0, end.Offset)
		})
	})
	t.Run("trap_40_aborted_records_are_not_delivered_unless_asked_for", func(t *testing.T) {
		config, c := setUp(t)
		transaction(t, config, "aborted", kgo.TryAbort)
		put(t, c, "orders", 0, "a")
		expectBodies(t, read(t, config).take(1), "a")
		config.Group, config.ReadUncommitted = "auditing", true
		expectBodies(t, read(t, config).take(2), "aborted", "a")
	})
}

// transaction writes one value in a transaction. The parameter end determines whether the transaction is committed or
// aborted.
func transaction(t testing.TB, config Config, value string, end kgo.TransactionEndTry) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(config.Brokers...), kgo.TransactionalID("producer-"+value), kgo.DisableClientMetrics())
	must(t, err)
	defer c.Close()
	err = c.BeginTransaction()
	if err == nil {
		err = c.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte(value)}).FirstErr()
	}
	if err == nil {
		err = c.EndTransaction(t.Context(), end)
	}
	must(t, err)
}

func TestARecordBecomesTheMessageThatItIs(t *testing.T) {
	config, c := setUp(t)
	headers := []kgo.RecordHeader{{Key: "ce_id", Value: []byte("e-1")}, {Key: "ce_source", Value: []byte("/shop")}, {Key: "note", Value: []byte("1")}, {Key: "note", Value: []byte("2")}}
	records := []*kgo.Record{
		{Topic: "orders", Value: []byte("body"), Headers: headers},
		{Topic: "orders", Key: []byte{}, Value: []byte{}, Headers: headers[3:]},
		{Topic: "orders", Key: []byte("k")},
	}
	must(t, c.ProduceSync(t.Context(), records...).FirstErr())
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
	must(t, c.ProduceSync(t.Context(), records...).FirstErr())
	got := read(t, config).take(5)
	m := got[0].Message
	if m.ID() != "e-1" || m.Type() != "paid" || string(m.Body) != `{"amount":1.0}` || got[0].Refused != "" {
		t.Errorf("the event came as %+v", m)
	}
	if _, found := m.Headers.Get("content-type"); found {
		t.Error("the content-type is that of the envelope, not of the body")
	}
	if v, _ := m.Headers.Get("traceparent"); string(v) != "00" {
		t.Error("a header of the record is missing")
	}
	t.Run("trap_17_a_malformed_event_is_refused_with_its_raw_bytes", func(t *testing.T) {
		for _, d := range got[1:3] {
			if d.Refused != semel.ReasonMalformed || d.Detail == "" || len(d.Message.Body) == 0 {
				t.Errorf("refused %q, %q, body %q", d.Refused, d.Detail, d.Message.Body)
			}
		}
		expectBodies(t, got[1:2], `{"id":`)
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
		must(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: long}, &kgo.Record{Topic: "orders", Value: long[1:]}).FirstErr())
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
		`broker "localhost" is not host:port`, `topic "a b" has a character`, `"x" is named twice`, `dead letters would go to "x"`,
		"Group is empty", "more than one place", "MaxRecord is 1 ", "RevokeTimeout is 1h", "SessionTimeout is 1ms", "format 9",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
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
		if err := r.fetchError(); !strings.Contains(err.Error(), "127.0.0.1:1") || !strings.Contains(err.Error(), "refused") {
			t.Errorf("it says: %v", err)
		}
	})
	t.Run("the topic does not exist", func(t *testing.T) {
		config, _ := setUp(t)
		config.Topics = []string{"orders", "odrers"}
		r := read(t, config)
		for range 2 { // the second call must fail in the same way
			err := r.fetchError()
			if !strings.Contains(err.Error(), "topic odrers does not exist") {
				t.Errorf("it says: %v", err)
			}
			if decided := (*semel.HandlerError)(nil); !errors.As(err, &decided) || decided.Decision != semel.DecidePermanent {
				t.Errorf("the error does not say that waiting cannot fix it: %v", err)
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

func TestEveryListedValuePrintsItsName(t *testing.T) {
	for want, value := range map[string]any{
		"records": Records, "cloudevents": CloudEvents, "Format(2)": CloudEvents + 1,
		"halt": Halt, "go_on": GoOn, "LostRecords(2)": GoOn + 1,
	} {
		if got := fmt.Sprint(value); got != want {
			t.Errorf("%s prints as %s", want, got)
		}
	}
}

func TestOptionsOfTheClient(t *testing.T) {
	config := Config{Brokers: []string{"127.0.0.1:1"}, Topics: []string{"orders"}, Group: "billing"}
	t.Run("I6_those_that_break_a_guarantee_are_refused_by_name", func(t *testing.T) {
		group := kgo.ConsumerGroup("other")
		given := func(context.Context, *kgo.Client, map[string][]int32) {}
		for name, options := range map[string][]kgo.Opt{
			"DisableAutoCommit":       {group, kgo.ConsumeTopics("a"), kgo.DisableAutoCommit()},
			"AutoCommitMarks":         {group, kgo.ConsumeTopics("a"), kgo.AutoCommitMarks()},
			"ConsumerGroup":           {group, kgo.ConsumeTopics("a")},
			"InstanceID":              {kgo.InstanceID("i")},
			"OnPartitionsRevoked":     {kgo.OnPartitionsRevoked(given)},
			"BlockRebalanceOnPoll":    {kgo.BlockRebalanceOnPoll()},
			"ConsumeTopics":           {kgo.ConsumeTopics("a")},
			"ConsumeRegex":            {kgo.ConsumeRegex()},
			"ConsumeResetOffset":      {kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd())},
			"FetchIsolationLevel":     {kgo.FetchIsolationLevel(kgo.ReadCommitted())},
			"FetchMaxBytes":           {kgo.FetchMaxBytes(1 << 20)},
			"MaxDecompressBatchBytes": {kgo.MaxDecompressBatchBytes(1 << 20)},
			"RequiredAcks":            {kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite()},
			"DisableIdempotentWrite":  {kgo.DisableIdempotentWrite()},
			"TransactionalID":         {kgo.TransactionalID("t")},
			"AllowAutoTopicCreation":  {kgo.AllowAutoTopicCreation()},
			"SeedBrokers":             {kgo.SeedBrokers("10.0.0.1:9092")},
			"ClientID":                {kgo.ClientID("c")},
			"Rack":                    {kgo.Rack("r")},
			"DialTLSConfig":           {kgo.DialTLS()},
			"WithLogger":              {kgo.WithLogger(kgo.BasicLogger(nil, kgo.LogLevelNone, nil))},
		} {
			c := config
			c.Options = options
			_, err := New(c)
			if err == nil || !strings.Contains(err.Error(), "kafka: Options ") {
				t.Errorf("%s: %v", name, err)
			}
			if text := fmt.Sprint(err); len(options) == 1 && !strings.Contains(text, "Options contains "+name+", ") && !strings.Contains(text, "cannot be used") {
				t.Errorf("%s is reported as %v", name, err)
			}
		}
	})
	t.Run("I6_others_are_used_and_so_are_client_id_and_rack", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, "0")
		config.ClientID, config.Rack, config.MaxFetch, config.MaxPartitionFetch = "me", "here", 3<<20, 2<<20
		config.Options = []kgo.Opt{kgo.RequestTimeoutOverhead(17 * time.Second), kgo.SoftwareNameAndVersion("mine", "1")}
		r := read(t, config)
		r.ack(r.take(1)...)
		for option, want := range map[any]any{
			"RequestTimeoutOverhead": 17 * time.Second, "ClientID": "me", "Rack": "here", "FetchMaxBytes": int32(3 << 20), "FetchMaxPartitionBytes": int32(2 << 20),
		} {
			if got := r.member.currentClient().OptValue(option); got != want {
				t.Errorf("%v is %v, not %v", option, got, want)
			}
		}
		if got := r.brokers.client().OptValue("RequestTimeoutOverhead"); got != 17*time.Second {
			t.Errorf("the client that commits has %v", got)
		}
	})
}

func TestTheLogHasThePartitionsThatComeAndGo(t *testing.T) {
	t.Run("one_line_when_they_are_assigned_and_one_when_they_are_given_up", func(t *testing.T) {
		c := cluster(t, kfake.SeedTopics(2, "orders"))
		text := &lockedBuffer{}
		put(t, newProducer(t, c.ListenAddrs()), "orders", 0, "0")
		r := read(t, Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", Logger: logTo(text)})
		got := r.take(1)
		if left, err := r.Settle(t.Context(), settlements(semel.Ack, got)); len(left) > 0 || err != nil {
			t.Fatal(left, err)
		}
		must(t, r.Close(t.Context()))
		for _, line := range []string{
			`level=INFO msg="partitions assigned" group=billing count=2 partitions="[orders/0@start orders/1@start]"`,
			`level=INFO msg="partitions given up" group=billing count=2 partitions="[orders/0@1 orders/1@start]"`,
		} {
			if strings.Count(text.String(), line) != 1 {
				t.Errorf("the log lacks %q:\n%s", line, text)
			}
		}
	})
}
