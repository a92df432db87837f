package kafka_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// inTransaction writes values in a producer transaction, and ends the transaction. If end is nil, the transaction stays
// open.
func inTransaction(t testing.TB, topic string, end *kgo.TransactionEndTry, values ...string) *kgo.Client {
	t.Helper()
	c := client(t, kgo.TransactionalID(group()))
	err := c.BeginTransaction()
	for _, v := range values {
		if err == nil {
			err = c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte(v)}).FirstErr()
		}
	}
	if err == nil && end != nil {
		err = c.EndTransaction(t.Context(), *end)
	}
	must.OK(t, err)
	return c
}

func bodiesOf(all []source.Delivery) []string {
	var out []string
	for _, d := range all {
		out = append(out, string(d.Message.Body))
	}
	return out
}

func expectBodies(t testing.TB, got []source.Delivery, want ...string) {
	t.Helper()
	if have := bodiesOf(got); !slices.Equal(have, want) {
		t.Fatalf("came %q, not %q", have, want)
	}
}

// fetchInBackground fetches and acks messages in the background until the test ends.
func fetchInBackground(t testing.TB, s *kafka.Source) {
	ctx, cancel := context.WithCancel(context.Background())
	var g sync.WaitGroup
	g.Go(func() {
		for ctx.Err() == nil {
			got, err := s.Fetch(ctx, source.Bound{Messages: 100, Bytes: 1 << 20})
			if err != nil && ctx.Err() == nil {
				t.Errorf("fetch: %v", err)
				return
			}
			if len(got) > 0 && ctx.Err() == nil {
				ack(t, s, got...)
			}
		}
	})
	t.Cleanup(func() { cancel(); g.Wait() })
}

func end(t testing.TB, c *kgo.Client, topic string) int64 {
	t.Helper()
	ends := must.Get(kadm.NewClient(c).ListEndOffsets(t.Context(), topic))(t)
	o, _ := ends.Lookup(topic, 0)
	return o.Offset
}

var (
	commits = kgo.TryCommit
	aborts  = kgo.TryAbort
)

func TestTransactionsInTheLog(t *testing.T) {
	t.Parallel()
	c := client(t)
	t.Run("trap_34_aborted_records_and_markers_leave_no_gap_that_holds_the_offset_back", func(t *testing.T) {
		topic := services.Topic(t, services.Kafka(t), 1)
		inTransaction(t, topic, &aborts, "aborted", "aborted")
		put(t, c, topic, 0, 1)
		inTransaction(t, topic, &commits, "a", "b")
		inTransaction(t, topic, &aborts, "aborted")
		settings := config(t, topic)
		s := newSource(t, settings)
		got := take(t, s, 3)
		expectBodies(t, got, "0", "a", "b")
		ack(t, s, got...)
		t.Run("trap_35_the_lag_becomes_zero", func(t *testing.T) {
			fetchInBackground(t, s)
			awaitOffset(t, c, settings.Group, topic, 0, end(t, c, topic))
		})
	})
	t.Run("trap_42_a_transaction_that_stays_open_is_told_of", func(t *testing.T) {
		topic := services.Topic(t, services.Kafka(t), 1)
		open := inTransaction(t, topic, nil, "held up")
		put(t, c, topic, 0, 1)
		settings := config(t, topic)
		held, goesOn := make(chan bool, 1000), make(chan bool, 1000)
		settings.Observe = func(all []kafka.LaneState) {
			for _, s := range all {
				if s.HeldUp {
					held <- true
				} else if s.Committed == 3 {
					goesOn <- true
				}
			}
		}
		fetchInBackground(t, newSource(t, settings))
		await(t, held, "a lane is held up")
		must.OK(t, open.EndTransaction(t.Context(), kgo.TryCommit))
		await(t, goesOn, "it goes on")
	})
}

func await(t testing.TB, c <-chan bool, what string) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
		t.Fatalf("waited in vain until %s", what)
	}
}

func TestACompactedTopic(t *testing.T) {
	t.Parallel()
	t.Run("trap_34_what_compaction_removed_leaves_no_gap_that_holds_the_offset_back", func(t *testing.T) {
		c := client(t)
		topic := services.Topic(t, services.Kafka(t), 1, "cleanup.policy=compact", "segment.ms=100", "min.cleanable.dirty.ratio=0.01", "max.compaction.lag.ms=100", "min.compaction.lag.ms=0")
		for i := range 20 {
			r := &kgo.Record{Topic: topic, Key: []byte{byte(i % 2)}, Value: []byte(fmt.Sprint(i))}
			must.OK(t, c.ProduceSync(t.Context(), r).FirstErr())
		}
		settings := config(t, topic)
		// this record is a tombstone
		if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Key: []byte{9}}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		s := newSource(t, settings)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var all []source.Delivery
		for ctx.Err() == nil && offset(t, c, settings.Group, topic, 0) != 21 {
			// No record arrives after the tombstone. The test checks that the offset still advances.
			most := patience
			if len(all) > 0 && all[len(all)-1].Message.Body == nil {
				most = 100 * time.Millisecond
			}
			soon, cancel := context.WithTimeout(ctx, most)
			got, err := s.Fetch(soon, source.Bound{Messages: 3, Bytes: 1 << 20})
			cancel()
			must.OK(t, err)
			all = append(all, got...)
			ack(t, s, got...)
		}
		last := all[len(all)-1].Message
		if v, _ := last.Headers.Get(kafka.HeaderTombstone); string(v) != "true" || last.Body != nil {
			t.Errorf("the tombstone came as %+v", last)
		}
	})
}

// awaitPartitions waits until the broker reports n partitions. A broker reports an added partition to clients
// after a delay.
func awaitPartitions(t testing.TB, c *kgo.Client, topic string, n int) {
	t.Helper()
	var last error
	there := 0
	known := services.Within(patience, func() bool {
		topics, err := kadm.NewClient(c).ListTopics(t.Context(), topic)
		last, there = err, len(topics[topic].Partitions)
		return err == nil && there == n
	})
	if !known {
		t.Fatalf("%s has %d partitions, not %d: %v", topic, there, n, last)
	}
}

func TestTopicsThatChange(t *testing.T) {
	t.Parallel()
	c := client(t)
	t.Run("trap_45_a_topic_created_anew_is_another", func(t *testing.T) {
		topic := services.Topic(t, services.Kafka(t), 1)
		put(t, c, topic, 0, 5)
		settings := config(t, topic)
		s := newSource(t, settings)
		old := take(t, s, 5)
		ack(t, s, old[:3]...)
		admin := kadm.NewClient(c)
		must.Get(admin.DeleteTopic(t.Context(), topic))(t)
		for {
			if anew, err := admin.CreateTopic(t.Context(), 1, 1, nil, topic); err == nil {
				services.AwaitTopic(t, services.Kafka(t), topic, anew.ID)
				break
			} else if !services.Passes(err) {
				t.Fatal(err)
			}
		}
		if err := fetchError(t, s); !strings.Contains(err.Error(), topic) || !strings.Contains(err.Error(), "deleted") {
			t.Errorf("it says: %v", err)
		}
		ack(t, s, old[3:]...) // an ack for a lost lane returns no error and has no effect
		put(t, client(t), topic, 0, 2)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var got []source.Delivery
		for ctx.Err() == nil && len(got) < 2 { // Fetch may return the error more than once
			some, _ := s.Fetch(ctx, source.Bound{Messages: 2, Bytes: 1 << 20})
			got = append(got, some...)
		}
		expectBodies(t, got, "0", "1")
		ack(t, s, got...)
		awaitOffset(t, c, settings.Group, topic, 0, 2)
	})
	t.Run("trap_37_a_partition_that_is_added_is_read_from_its_beginning", func(t *testing.T) {
		topic := services.Topic(t, services.Kafka(t), 1)
		settings := config(t, topic)
		settings.Start.Now = true
		put(t, c, topic, 0, 3)
		s := newSource(t, settings)
		fetchInBackground(t, s)
		awaitOffset(t, c, settings.Group, topic, 0, 3)
		must.Get(kadm.NewClient(c).UpdatePartitions(t.Context(), 2, topic))(t)
		awaitPartitions(t, c, topic, 2)
		fresh := client(t)
		put(t, fresh, topic, 1, 4)
		awaitOffset(t, c, settings.Group, topic, 1, 4)
	})
	t.Run("I0_an_offset_that_is_gone_is_a_loud_loss", func(t *testing.T) {
		topic := services.Topic(t, services.Kafka(t), 1)
		put(t, c, topic, 0, 10)
		settings := config(t, topic)
		s := newSource(t, settings)
		ack(t, s, take(t, s, 10)[:3]...)
		shut(t, s)
		truncate := kadm.Offsets{}
		truncate.AddOffset(topic, 0, 7, -1)
		must.Get(kadm.NewClient(c).DeleteRecords(t.Context(), truncate))(t)
		why := waitBlocked(t, newSource(t, settings))
		for _, part := range []string{"offset 3 of group", "no longer in the log", "--reset-offsets"} {
			if !strings.Contains(why, part) {
				t.Errorf("it does not say %q: %v", part, why)
			}
		}
	})
}

func TestRecordsOfEverySize(t *testing.T) {
	t.Parallel()
	c := client(t, kgo.ProducerBatchMaxBytes(20<<20))
	topic := services.Topic(t, services.Kafka(t), 1, "max.message.bytes=25000000")
	letters := services.Topic(t, services.Kafka(t), 1, "max.message.bytes=2000")
	headers := make([]kgo.RecordHeader, 1000)
	for i := range headers {
		headers[i] = kgo.RecordHeader{Key: fmt.Sprintf("h%d", i), Value: []byte("v")}
	}
	large := bytes.Repeat([]byte("xy"), 8<<20)
	records := []*kgo.Record{
		{Topic: topic, Value: []byte{}},
		{Topic: topic, Value: []byte("many headers"), Headers: headers},
		{Topic: topic, Value: large},
		{Topic: topic, Value: append(large, 'z')},
	}
	for _, r := range records {
		must.OK(t, c.ProduceSync(t.Context(), r).FirstErr())
	}
	settings := config(t, topic)
	settings.DeadLetters = letters
	s := newSource(t, settings)
	got := take(t, s, 4)
	t.Run("trap_83_every_size_comes_as_it_was", func(t *testing.T) {
		if len(got[0].Message.Body) != 0 || len(got[1].Message.Headers) != 1000 || !bytes.Equal(got[2].Message.Body, large) || got[2].Refused != "" {
			t.Errorf("bodies of %d, %d and %d bytes", len(got[0].Message.Body), len(got[1].Message.Body), len(got[2].Message.Body))
		}
	})
	t.Run("trap_82_a_record_above_the_limit_is_refused", func(t *testing.T) {
		if length, _ := got[3].Message.Headers.Get(kafka.HeaderLength); got[3].Refused != semel.ReasonTooLarge || string(length) != "16777217" {
			t.Errorf("refused %q, length %q", got[3].Refused, length)
		}
	})
	t.Run("G3_a_dead_letter_too_large_for_its_topic_is_cut_and_settled", func(t *testing.T) {
		left, err := s.Settle(t.Context(), []source.Settlement{{Delivery: &got[2], Kind: semel.DeadLetter}})
		for began := time.Now(); len(left) > 0 && time.Since(began) < patience; { // the brokers have not confirmed the deletion yet
			left, err = s.Settle(t.Context(), []source.Settlement{{Delivery: &got[2], Kind: semel.DeadLetter}})
		}
		if err != nil || len(left) > 0 {
			t.Fatalf("left %v: %v", left, err)
		}
		letter := take(t, newSource(t, config(t, letters)), 1)[0]
		length, _ := letter.Message.Headers.Get(kafka.HeaderLength)
		at, _ := letter.Message.Headers.Get(kafka.HeaderOffset)
		if string(length) != "16777216" || string(at) != "2" || len(letter.Message.Body) > 0 {
			t.Errorf("length %q, offset %q, %d bytes", length, at, len(letter.Message.Body))
		}
	})
}
