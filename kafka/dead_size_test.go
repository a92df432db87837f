package kafka

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
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

// random is a value that no compression makes smaller.
func random(t testing.TB, size int) []byte {
	t.Helper()
	value := make([]byte, size)
	if _, err := rand.Read(value); err != nil {
		t.Fatal(err)
	}
	return value
}

// lettersTake sets how large a batch the topic for dead letters takes.
func lettersTake(t testing.TB, c *kgo.Client, bytes int) {
	t.Helper()
	text := strconv.Itoa(bytes)
	all, err := kadm.NewClient(c).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &text}}, "letters")
	if err != nil || all[0].Err != nil {
		t.Fatal(err, all)
	}
}

// writes counts the requests that write to a topic, and those refused for
// their size.
func writes(c *kfake.Cluster) *atomic.Int64 {
	n := new(atomic.Int64)
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		n.Add(1)
		return nil, nil, false
	})
	return n
}

// many writes n records of a size that does not compress, and delivers them.
func many(t *testing.T, p *kgo.Client, r *reader, n, size int) []source.Delivery {
	t.Helper()
	for range n {
		if err := p.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: random(t, size)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	return r.take(n)
}

func TestDeadLettersThatAreLargeTogether(t *testing.T) {
	const count, size = 400, 10_000 // 4 MB
	t.Run("trap_T94_batches_of_dead_letters_fit_the_topic", func(t *testing.T) {
		cluster := cluster(t, kfake.SeedTopics(1, "orders", "letters"))
		p := newProducer(t, cluster.ListenAddrs())
		lettersTake(t, p, 300_000)
		r := read(t, Config{Brokers: cluster.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", DeadLetters: "letters"})
		got := many(t, p, r, count, size)
		requests := writes(cluster)
		r.settle(semel.DeadLetter, got...)
		if n := lettersWritten(t, p); n != count {
			t.Errorf("%d of %d dead letters are there", n, count)
		}
		if n := requests.Load(); n > 40 {
			t.Errorf("%d requests for %d letters of which 29 fit a batch: some were refused", n, count)
		}
	})
	t.Run("trap_T94_a_batch_that_is_refused_is_sent_record_by_record", func(t *testing.T) {
		cluster := cluster(t, kfake.SeedTopics(1, "orders", "letters"))
		p := newProducer(t, cluster.ListenAddrs())
		cluster.ControlKey(int16(kmsg.DescribeConfigs), func(kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			return nil, errors.New("not for this user"), true
		})
		r := read(t, Config{Brokers: cluster.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", DeadLetters: "letters"})
		got := many(t, p, r, count, size)
		lettersTake(t, p, 15_000)
		r.settle(semel.DeadLetter, got...)
		if n := lettersWritten(t, p); n != count {
			t.Errorf("%d of %d dead letters are there", n, count)
		}
	})
}

func TestADeadLetterThatIsTooLargeByItself(t *testing.T) {
	t.Run("trap_T94_one_that_the_topic_does_not_take_is_cut_and_its_neighbours_are_whole", func(t *testing.T) {
		cluster := cluster(t, kfake.SeedTopics(1, "orders", "letters"))
		p := newProducer(t, cluster.ListenAddrs())
		lettersTake(t, p, 100_000)
		var log lockedBuffer // its reader works on
		r := read(t, Config{Brokers: cluster.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", DeadLetters: "letters", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		large := random(t, 200_000)
		for _, value := range [][]byte{[]byte("a"), large, []byte("b")} {
			if err := p.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Key: []byte("k"), Value: value, Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte("x")}}}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		r.settle(semel.DeadLetter, r.take(3)...)
		all := letters(t, r.config.Brokers, 3)
		for _, letter := range all {
			switch {
			case header(letter, HeaderOffset) != "1":
				if len(letter.Value) != 1 || header(letter, HeaderLength) != "(none)" {
					t.Errorf("a neighbour became %d bytes, length %s", len(letter.Value), header(letter, HeaderLength))
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
		cluster := cluster(t, kfake.SeedTopics(1, "orders", "letters"))
		p := newProducer(t, cluster.ListenAddrs())
		lettersTake(t, p, 10_000)
		r := read(t, Config{Brokers: cluster.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", DeadLetters: "letters"})
		if err := p.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Key: []byte("k"), Value: random(t, 200_000), Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte("x")}}}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		r.settle(semel.DeadLetter, r.take(1)...)
		letter := letters(t, r.config.Brokers, 1)[0]
		if string(letter.Key) != "k" || header(letter, "ce_id") != "x" || len(letter.Value) > 0 || header(letter, HeaderLength) != "200000" {
			t.Errorf("it has key %q, ce_id %s, %d bytes, length %s", letter.Key, header(letter, "ce_id"), len(letter.Value), header(letter, HeaderLength))
		}
	})
	t.Run("of what does not fit with its key and headers its place is written", func(t *testing.T) {
		cluster := cluster(t, kfake.SeedTopics(1, "orders", "letters"))
		p := newProducer(t, cluster.ListenAddrs())
		lettersTake(t, p, 2_000)
		r := read(t, Config{Brokers: cluster.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", DeadLetters: "letters"})
		if err := p.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Key: random(t, 5_000), Value: random(t, 5_000)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		r.settle(semel.DeadLetter, r.take(1)...)
		letter := letters(t, r.config.Brokers, 1)[0]
		if len(letter.Key) > 0 || len(letter.Value) > 0 || letter.Value == nil || header(letter, HeaderLength) != "5000" || header(letter, HeaderOffset) != "0" {
			t.Errorf("it is %+v", letter)
		}
	})
	t.Run("trap_T94_a_cut_letter_that_is_read_again_is_no_message", func(t *testing.T) {
		config, p := setUp(t)
		if err := p.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Value: []byte("begin"), Headers: []kgo.RecordHeader{{Key: HeaderLength, Value: []byte("200000")}}}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if d := read(t, config).take(1)[0]; d.Refused != semel.ReasonTooLarge {
			t.Errorf("it is %q: %s", d.Refused, d.Detail)
		}
	})
}

func TestManyDeadLettersThatCannotBeWrittenAreOneLine(t *testing.T) {
	t.Run("trap_T94_the_error_has_a_count_and_not_each_of_them", func(t *testing.T) {
		cluster := cluster(t, kfake.SeedTopics(1, "orders", "letters"))
		p := newProducer(t, cluster.ListenAddrs())
		r := read(t, Config{Brokers: cluster.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", DeadLetters: "letters"})
		put(t, p, "orders", 0, numbered("", 0, 299)...)
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
