package kafka

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// whoseLetters is a source's configuration, whose letters are read.
func whoseLetters(c *kfake.Cluster) Config {
	return quiet(Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", DeadLetters: "letters"})
}

func readLetters(t *testing.T, c Config) (all []Letter) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := ReadLetters(ctx, c, "", func(l Letter) error { all = append(all, l); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestLettersAreReadAsTheirRecordsWere(t *testing.T) {
	cluster := cluster(t, kfake.SeedTopics(1, "orders"), kfake.SeedTopics(3, "letters"))
	p := newProducer(t, cluster.ListenAddrs())
	original := []*kgo.Record{
		{Topic: "orders", Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte("x")}, {Key: HeaderReason, Value: []byte("of an earlier life")}}},
		{Topic: "orders"},
	}
	if err := p.ProduceSync(t.Context(), original...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	config := whoseLetters(cluster)
	r := read(t, config)
	if err := r.Info().DeadLetters("billing"); err != nil {
		t.Fatal(err)
	}
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
			if err := p.ProduceSync(t.Context(), &kgo.Record{Topic: "letters", Partition: int32(n), Value: []byte("x"), Headers: headers}).FirstErr(); err != nil {
				t.Fatal(err)
			}
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
		cluster := cluster(t, kfake.SeedTopics(1, "orders", "letters"))
		p := newProducer(t, cluster.ListenAddrs())
		put(t, p, "letters", 0, "0", "1", "2")
		n := 0
		err := ReadLetters(t.Context(), whoseLetters(cluster), "letters", func(Letter) error {
			n++
			put(t, p, "letters", 0, "more")
			return nil
		})
		if err != nil || n != 3 {
			t.Errorf("%d letters: %v", n, err)
		}
	})
	t.Run("G4_a_topic_that_is_made_anew_meanwhile_is_named", func(t *testing.T) {
		cluster := cluster(t, kfake.SeedTopics(1, "orders", "letters"))
		p := newProducer(t, cluster.ListenAddrs())
		put(t, p, "letters", 0, "0", "1", "2")
		admin, once := kadm.NewClient(p), true
		err := ReadLetters(t.Context(), whoseLetters(cluster), "letters", func(Letter) error {
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
		if !errors.Is(err, ErrRange) || !strings.Contains(err.Error(), "topic letters was made anew while it was read") {
			t.Errorf("it says %v", err)
		}
	})
	t.Run("an empty topic has none", func(t *testing.T) {
		if all := readLetters(t, whoseLetters(cluster(t, kfake.SeedTopics(2, "orders", "letters")))); len(all) != 0 {
			t.Errorf("%d letters", len(all))
		}
	})
	t.Run("the first error ends it", func(t *testing.T) {
		cluster := cluster(t, kfake.SeedTopics(1, "orders", "letters"))
		put(t, newProducer(t, cluster.ListenAddrs()), "letters", 0, "0", "1")
		n, stop := 0, errors.New("stop")
		if err := ReadLetters(t.Context(), whoseLetters(cluster), "letters", func(Letter) error { n++; return stop }); !errors.Is(err, stop) || n != 1 {
			t.Errorf("%d letters: %v", n, err)
		}
	})
	t.Run("a topic that is not there is named", func(t *testing.T) {
		err := ReadLetters(t.Context(), whoseLetters(cluster(t, kfake.SeedTopics(1, "orders"))), "none", func(Letter) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "topic none does not exist") {
			t.Errorf("it says %v", err)
		}
	})
	t.Run("without a topic it says what is missing", func(t *testing.T) {
		c := whoseLetters(cluster(t, kfake.SeedTopics(1, "orders")))
		c.DeadLetters = ""
		if err := ReadLetters(t.Context(), c, "", nil); err == nil || !strings.Contains(err.Error(), "dead_letter: {topic: …}") {
			t.Errorf("it says %v", err)
		}
	})
	t.Run("I1_a_transaction_at_the_end_is_passed_over", func(t *testing.T) {
		cluster := cluster(t, kfake.SeedTopics(1, "orders", "letters"))
		c, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.TransactionalID("t"), kgo.DisableClientMetrics())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
			if err := c.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: "letters", Value: []byte("x")}).FirstErr(); err != nil {
				t.Fatal(err)
			}
			if err := c.EndTransaction(t.Context(), end); err != nil {
				t.Fatal(err)
			}
		}
		if all := readLetters(t, whoseLetters(cluster)); len(all) != 1 {
			t.Errorf("%d letters", len(all))
		}
	})
}
