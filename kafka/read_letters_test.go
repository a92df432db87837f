package kafka

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// whoseLetters returns the configuration of the consumer whose dead letters the tests read.
func whoseLetters(c *kfake.Cluster) Config {
	return quiet(Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", DeadLetters: "letters"})
}

func readLetters(t *testing.T, c Config) (all []Letter) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, ReadLetters(ctx, c, "", func(l Letter) error { all = append(all, l); return nil }))
	return all
}

func TestLettersAreReadAsTheirRecordsWere(t *testing.T) {
	cluster := cluster(t, kfake.SeedTopics(1, "orders"), kfake.SeedTopics(3, "letters"))
	p := newProducer(t, cluster.ListenAddrs())
	original := []*kgo.Record{
		{Topic: "orders", Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte("x")}, {Key: HeaderReason, Value: []byte("of an earlier life")}}},
		{Topic: "orders"},
	}
	must(t, p.ProduceSync(t.Context(), original...).FirstErr())
	config := whoseLetters(cluster)
	r := read(t, config)
	must(t, r.Info().DeadLetters("billing"))
	got := r.take(2)
	dead := []source.Settlement{
		{Delivery: &got[0], Kind: semel.DeadLetter, Reason: semel.ReasonExhausted, Attempts: 10, Err: errors.New("no account")},
		{Delivery: &got[1], Kind: semel.DeadLetter, Reason: semel.ReasonNoIdentity},
	}
	if left, err := r.Settle(t.Context(), dead); err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	t.Run("G4_key_value_headers_place_and_time_are_those_of_the_record", func(t *testing.T) {
		all := map[int64]Letter{}
		for _, l := range readLetters(t, config) {
			all[l.Delivery.Message.Origin.Offset] = l
		}
		first, was := all[0], got[0].Message
		m := first.Delivery.Message
		if len(all) != 2 || first.Foreign || first.Cut || first.Consumer != "billing" || first.Reason != semel.ReasonExhausted || first.Attempts != 10 || first.Error != "no account" || first.WrittenAt.IsZero() {
			t.Errorf("%d letters, the first %+v", len(all), first)
		}
		if string(m.Key) != "k" || string(m.Body) != "v" || m.Topic != "orders" || m.Origin.Partition != 0 || !m.Origin.Time().Equal(was.Origin.Time()) || m.ID() != was.ID() || !slices.EqualFunc(m.Headers, was.Headers, sameHeader) {
			t.Errorf("the message is %+v, and was %+v", m, was)
		}
		if _, tombstone := all[1].Delivery.Message.Headers.Get(HeaderTombstone); !tombstone {
			t.Errorf("a null value became %+v", all[1].Delivery.Message)
		}
	})
	t.Run("trap_18_what_is_foreign_or_cut_hides_no_letter", func(t *testing.T) {
		half := []kgo.RecordHeader{{Key: HeaderConsumer, Value: []byte("billing")}, {Key: HeaderTopic, Value: []byte("orders")}, {Key: HeaderPartition, Value: []byte("-1")}, {Key: HeaderOffset, Value: []byte("x")}}
		cut := []kgo.RecordHeader{{Key: HeaderConsumer, Value: []byte("billing")}, {Key: HeaderTopic, Value: []byte("orders")}, {Key: HeaderPartition, Value: []byte("0")}, {Key: HeaderOffset, Value: []byte("7")}, {Key: HeaderLength, Value: []byte("200000")}}
		for n, headers := range [][]kgo.RecordHeader{nil, half, cut} {
			must(t, p.ProduceSync(t.Context(), &kgo.Record{Topic: "letters", Partition: int32(n), Value: []byte("x"), Headers: headers}).FirstErr())
		}
		foreign, whole, short := 0, 0, 0
		for _, l := range readLetters(t, config) {
			switch {
			case l.Foreign:
				foreign++
			case l.Cut && l.Delivery.Refused == semel.ReasonTooLarge:
				short++
			default:
				whole++
			}
		}
		if foreign != 2 || short != 1 || whole != 2 {
			t.Errorf("%d foreign, %d cut, %d whole", foreign, short, whole)
		}
	})
	t.Run("G4_no_group_is_joined_and_no_offset_committed", func(t *testing.T) {
		groups, err := kadm.NewClient(p).ListGroups(t.Context())
		if err != nil || len(groups) != 1 {
			t.Errorf("the groups are %v: %v", groups.Groups(), err)
		}
	})
}

func TestLettersEndWhereTheyEndedWhenItBegan(t *testing.T) {
	t.Run("G4_what_comes_while_they_are_read_is_left", func(t *testing.T) {
		config, p := setUp(t)
		put(t, p, "letters", 0, "0", "1", "2")
		n := 0
		err := ReadLetters(t.Context(), withLetters(config), "letters", func(Letter) error {
			n++
			put(t, p, "letters", 0, "more")
			return nil
		})
		if err != nil || n != 3 {
			t.Errorf("%d letters: %v", n, err)
		}
	})
	t.Run("G4_a_topic_that_is_made_anew_meanwhile_is_named", func(t *testing.T) {
		config, p := setUp(t)
		put(t, p, "letters", 0, "0", "1", "2")
		admin, once := kadm.NewClient(p), true
		err := ReadLetters(t.Context(), withLetters(config), "letters", func(Letter) error {
			if !once {
				return nil
			}
			once = false
			_, err := admin.DeleteTopics(t.Context(), "letters")
			if err == nil {
				_, err = admin.CreateTopic(t.Context(), 1, 1, nil, "letters")
			}
			return err
		})
		if !errors.Is(err, ErrRange) || !strings.Contains(err.Error(), "topic letters was deleted and created again while it was read") {
			t.Errorf("it says %v", err)
		}
	})
	t.Run("an empty topic has none", func(t *testing.T) {
		if all := readLetters(t, whoseLetters(cluster(t, kfake.SeedTopics(2, "orders", "letters")))); len(all) != 0 {
			t.Errorf("%d letters", len(all))
		}
	})
	t.Run("the first error ends reading", func(t *testing.T) {
		cluster := cluster(t, kfake.SeedTopics(1, "orders", "letters"))
		put(t, newProducer(t, cluster.ListenAddrs()), "letters", 0, "0", "1")
		n, stop := 0, errors.New("stop")
		if err := ReadLetters(t.Context(), whoseLetters(cluster), "letters", func(Letter) error { n++; return stop }); !errors.Is(err, stop) || n != 1 {
			t.Errorf("%d letters: %v", n, err)
		}
	})
	t.Run("a missing topic is named", func(t *testing.T) {
		err := ReadLetters(t.Context(), whoseLetters(cluster(t, kfake.SeedTopics(1, "orders"))), "none", func(Letter) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "topic none does not exist") {
			t.Errorf("it says %v", err)
		}
	})
	t.Run("without a topic the error says what is missing", func(t *testing.T) {
		c := whoseLetters(cluster(t, kfake.SeedTopics(1, "orders")))
		c.DeadLetters = ""
		if err := ReadLetters(t.Context(), c, "", nil); err == nil || !strings.Contains(err.Error(), "dead_letter: {topic: …}") {
			t.Errorf("it says %v", err)
		}
	})
	t.Run("I1_a_transaction_at_the_end_is_passed_over", func(t *testing.T) {
		cluster := cluster(t, kfake.SeedTopics(1, "orders", "letters"))
		c, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.TransactionalID("t"), kgo.DisableClientMetrics())
		must(t, err)
		defer c.Close()
		for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
			must(t, c.BeginTransaction())
			must(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: "letters", Value: []byte("x")}).FirstErr())
			must(t, c.EndTransaction(t.Context(), end))
		}
		if all := readLetters(t, whoseLetters(cluster)); len(all) != 1 {
			t.Errorf("%d letters", len(all))
		}
	})
}

// randomBytes returns a random value, which does not compress.
func randomBytes(t testing.TB, size int) []byte {
	t.Helper()
	value := make([]byte, size)
	if _, err := rand.Read(value); err != nil {
		t.Fatal(err)
	}
	return value
}

// lettersTake sets the largest batch size that the topic for dead letters accepts.
func lettersTake(t testing.TB, c *kgo.Client, bytes int) {
	t.Helper()
	text := strconv.Itoa(bytes)
	all, err := kadm.NewClient(c).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &text}}, "letters")
	if err != nil || all[0].Err != nil {
		t.Fatal(err, all)
	}
}

// countWrites counts the write requests, including those that the brokers refuse for their size.
func countWrites(c *kfake.Cluster) *atomic.Int64 {
	n := new(atomic.Int64)
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		n.Add(1)
		return nil, nil, false
	})
	return n
}

// writeAndFetch writes n records that do not compress, and fetches these records. The parameter size is the length
// of each value.
func writeAndFetch(t *testing.T, p *kgo.Client, r *reader, n, size int) []source.Delivery {
	t.Helper()
	for range n {
		must(t, p.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: randomBytes(t, size)}).FirstErr())
	}
	return r.take(n)
}

func TestDeadLettersThatAreLargeTogether(t *testing.T) {
	const count, size = 400, 10_000 // 4 MB in total
	t.Run("trap_T94_batches_of_dead_letters_fit_the_topic", func(t *testing.T) {
		cluster, config, p := startBrokers(t)
		lettersTake(t, p, 300_000)
		r := read(t, withLetters(config))
		got := writeAndFetch(t, p, r, count, size)
		requests := countWrites(cluster)
		r.settle(semel.DeadLetter, got...)
		if n := lettersWritten(t, p); n != count {
			t.Errorf("%d of %d dead letters were written", n, count)
		}
		if n := requests.Load(); n > 40 {
			t.Errorf("%d requests for %d letters of which 29 fit a batch: some were refused", n, count)
		}
	})
	t.Run("trap_T94_a_batch_that_is_refused_is_sent_record_by_record", func(t *testing.T) {
		cluster, config, p := startBrokers(t)
		cluster.ControlKey(int16(kmsg.DescribeConfigs), func(kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			return nil, errors.New("not for this user"), true
		})
		r := read(t, withLetters(config))
		got := writeAndFetch(t, p, r, count, size)
		lettersTake(t, p, 15_000)
		r.settle(semel.DeadLetter, got...)
		if n := lettersWritten(t, p); n != count {
			t.Errorf("%d of %d dead letters were written", n, count)
		}
	})
}

func TestADeadLetterThatIsTooLargeByItself(t *testing.T) {
	t.Run("trap_T94_one_that_the_topic_does_not_take_is_cut_and_its_neighbours_are_whole", func(t *testing.T) {
		config, p := setUp(t)
		lettersTake(t, p, 100_000)
		var log lockedBuffer // a lockedBuffer, because the source still runs while the test reads
		config.Logger = logTo(&log)
		r := read(t, withLetters(config))
		large := randomBytes(t, 200_000)
		for _, value := range [][]byte{[]byte("a"), large, []byte("b")} {
			must(t, p.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Key: []byte("k"), Value: value, Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte("x")}}}).FirstErr())
		}
		r.settle(semel.DeadLetter, r.take(3)...)
		all := readDeadLetters(t, r.config.Brokers, 3)
		for _, letter := range all {
			switch {
			case header(letter, HeaderOffset) != "1":
				if len(letter.Value) != 1 || header(letter, HeaderLength) != "(none)" {
					t.Errorf("another letter became %d bytes, length %s", len(letter.Value), header(letter, HeaderLength))
				}
			case !bytes.Equal(letter.Value, large[:message.Kept]) || header(letter, HeaderLength) != "200000" || string(letter.Key) != "k" || header(letter, "ce_id") != "x":
				t.Errorf("the cut letter has %d bytes, length %s, key %q", len(letter.Value), header(letter, HeaderLength), letter.Key)
			}
		}
		if n := strings.Count(log.String(), "cut"); n != 1 || !strings.Contains(log.String(), "offset=1") {
			t.Errorf("the log says %q", log.String())
		}
	})
	t.Run("trap_T94_one_that_does_not_fit_with_64_KiB_keeps_key_and_headers_without_its_value", func(t *testing.T) {
		config, p := setUp(t)
		lettersTake(t, p, 10_000)
		r := read(t, withLetters(config))
		must(t, p.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Key: []byte("k"), Value: randomBytes(t, 200_000), Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte("x")}}}).FirstErr())
		r.settle(semel.DeadLetter, r.take(1)...)
		letter := readDeadLetters(t, r.config.Brokers, 1)[0]
		if string(letter.Key) != "k" || header(letter, "ce_id") != "x" || len(letter.Value) > 0 || header(letter, HeaderLength) != "200000" {
			t.Errorf("it has key %q, ce_id %s, %d bytes, length %s", letter.Key, header(letter, "ce_id"), len(letter.Value), header(letter, HeaderLength))
		}
	})
	t.Run("a letter whose key and headers do not fit keeps only its origin", func(t *testing.T) {
		config, p := setUp(t)
		lettersTake(t, p, 2_000)
		r := read(t, withLetters(config))
		must(t, p.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Key: randomBytes(t, 5_000), Value: randomBytes(t, 5_000)}).FirstErr())
		r.settle(semel.DeadLetter, r.take(1)...)
		letter := readDeadLetters(t, r.config.Brokers, 1)[0]
		if len(letter.Key) > 0 || len(letter.Value) > 0 || letter.Value == nil || header(letter, HeaderLength) != "5000" || header(letter, HeaderOffset) != "0" {
			t.Errorf("it is %+v", letter)
		}
	})
	t.Run("trap_T94_a_cut_letter_that_is_read_again_is_no_message", func(t *testing.T) {
		config, p := setUp(t)
		must(t, p.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("begin"), Headers: []kgo.RecordHeader{{Key: HeaderLength, Value: []byte("200000")}}}).FirstErr())
		if d := read(t, config).take(1)[0]; d.Refused != semel.ReasonTooLarge {
			t.Errorf("the letter is %q: %s", d.Refused, d.Detail)
		}
	})
}

func TestManyDeadLettersThatCannotBeWrittenAreOneLine(t *testing.T) {
	t.Run("trap_T94_the_error_has_a_count_and_not_each_of_them", func(t *testing.T) {
		cluster, config, p := startBrokers(t)
		r := read(t, withLetters(config))
		put(t, p, "orders", 0, numberedIDs("", 0, 299)...)
		got := r.take(300)
		cluster.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			return refusedProduce(request.(*kmsg.ProduceRequest), kerr.TopicAuthorizationFailed), nil, true
		})
		left, err := r.Settle(t.Context(), settlements(semel.DeadLetter, got))
		if len(left) != 300 || err == nil {
			t.Fatalf("left %d: %v", len(left), err)
		}
		if text := err.Error(); len(text) > 600 || !strings.Contains(text, "300 dead letters") || !strings.Contains(text, "offset 0") || strings.Contains(text, "\n") {
			t.Errorf("%d bytes: %.700s", len(text), fmt.Sprint(err))
		}
	})
}
