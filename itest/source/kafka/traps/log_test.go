package traps_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestOwners(t *testing.T) {
	t.Run("trap_26_a_handler_that_runs_while_its_lane_is_taken_away_has_one_effect", func(t *testing.T) {
		w := newWorld(t, 2)
		ids := append(makeIDs("a", 1, 50), makeIDs("b", 1, 50)...)
		w.publish(0, ids[:50]...)
		w.publish(1, ids[50:]...)
		began, goOn := make(chan bool, 1000), make(chan bool)
		old := w.start(func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			began <- true
			<-goOn
			return count(ctx, tx, m)
		}, func(c *kafka.Config) { c.RevokeTimeout = time.Second })
		<-began
		<-began
		heir := w.start(count, nil)
		w.waitUntil("the heir has a lane", func() bool { return heir.consumer.Counts().Deliveries > 0 })
		close(goOn)
		w.waitCommitted()
		w.expectOnce(ids...)
		if err := errors.Join(old.leave(), heir.leave()); err != nil {
			t.Error(err)
		}
	})
}

func TestOffsetsThatAreGone(t *testing.T) {
	t.Run("trap_36_when_the_groups_offsets_are_deleted_everything_comes_again_and_nothing_happens", func(t *testing.T) {
		w := newWorld(t, 3)
		ids := makeIDs("m", 1, 600)
		for i, id := range ids {
			w.producer.Produce(context.Background(), w.order(int32(i%3), id), nil)
		}
		first := w.start(count, nil)
		w.waitUntil("all is applied", func() bool { return first.consumer.Counts().Applied == 600 })
		w.waitCommitted()
		must.OK(t, first.leave())
		must.Get(w.admin.DeleteGroup(context.Background(), w.group))(t)
		second := w.start(count, nil)
		w.waitCommitted()
		w.expectOnce(ids...)
		if c := second.consumer.Counts(); c.Duplicates != 600 || c.Applied != 0 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("trap_39_nothing_is_read_from_an_offset_that_an_open_transaction_is_about_to_move", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, makeIDs("m", 1, 10)...)
		c := w.client(kgo.TransactionalID("mover-"+w.group), kgo.TransactionTimeout(time.Minute))
		err := c.BeginTransaction()
		if err == nil {
			err = c.ProduceSync(context.Background(), w.order(0, "m0011")).FirstErr()
		}
		must.OK(t, err)
		w.moveInTransaction(c, 7)
		p := w.start(count, func(c *kafka.Config) { c.NextGen = true })
		w.waitUntil("the member waits for the offset", func() bool { return w.members() == 1 })
		if n := p.consumer.Counts().Deliveries; n != 0 {
			t.Errorf("%d were delivered while the group's offset was undecided", n)
		}
		must.OK(t, c.EndTransaction(context.Background(), kgo.TryCommit))
		w.waitCommitted()
		w.expectOnce(makeIDs("m", 8, 11)...)
		if c := p.consumer.Counts(); c.Applied != 4 {
			t.Errorf("%+v", c)
		}
	})
}

func (w *world) members() int {
	groups, err := w.admin.DescribeConsumerGroups(context.Background(), w.group)
	if err != nil {
		return 0
	}
	return len(groups[w.group].Members)
}

// moveInTransaction commits the group's offset in a transaction of another client.
func (w *world) moveInTransaction(c *kgo.Client, offset int64) {
	w.t.Helper()
	id, epoch, err := c.ProducerID(context.Background())
	must.OK(w.t, err)
	name := "mover-" + w.group
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = name, id, epoch, w.group
	added, err := add.RequestWith(context.Background(), c)
	if err == nil {
		err = kerr.ErrorForCode(added.ErrorCode)
	}
	must.OK(w.t, err)
	described := must.Get(w.admin.ListTopics(context.Background(), w.topic))(w.t)
	move := kmsg.NewPtrTxnOffsetCommitRequest()
	move.TransactionalID, move.ProducerID, move.ProducerEpoch, move.Group, move.Generation = name, id, epoch, w.group, -1
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic, topic.TopicID = w.topic, described[w.topic].ID
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Offset = offset
	topic.Partitions = append(topic.Partitions, partition)
	move.Topics = append(move.Topics, topic)
	moved, err := move.RequestWith(context.Background(), c)
	if err == nil {
		err = kerr.ErrorForCode(moved.Topics[0].Partitions[0].ErrorCode)
	}
	must.OK(w.t, err)
}

func TestTopicsThatAreOthers(t *testing.T) {
	t.Run("trap_45_a_topic_deleted_and_made_again_while_it_is_written_and_read_loses_nothing_new", func(t *testing.T) {
		w := newWorld(t, 2)
		p := w.start(count, nil)
		w.publish(0, makeIDs("a", 1, 50)...)
		w.publish(1, makeIDs("b", 1, 50)...)
		w.waitCommitted()
		must.Get(w.admin.DeleteTopic(context.Background(), w.topic))(t)
		w.waitUntil("it is made again", func() bool {
			anew, err := w.admin.CreateTopic(context.Background(), 2, 1, nil, w.topic)
			if err == nil {
				services.AwaitTopic(t, w.brokers, w.topic, anew.ID)
			}
			return err == nil
		})
		w.producer = w.client()
		w.publish(0, makeIDs("c", 1, 80)...) // the deleted topic had the same offsets
		w.publish(1, makeIDs("b", 30, 60)...)
		w.waitCommitted()
		w.expectOnce(append(append(makeIDs("a", 1, 50), makeIDs("b", 1, 60)...), makeIDs("c", 1, 80)...)...)
		if err := p.leave(); err != nil {
			t.Error(err)
		}
	})
	t.Run("trap_46_what_a_mirror_copied_to_other_partitions_and_offsets_is_a_duplicate_and_trap_44_the_offset_plays_no_part", func(t *testing.T) {
		w, mirror := newWorld(t, 1), newWorld(t, 2)
		w.publish(0, makeIDs("m", 1, 100)...)
		first := w.start(count, nil)
		w.waitCommitted()
		must.OK(t, first.leave())
		mirror.store = w.store
		mirror.publish(1, "new 1", "new 2") // these records have the offsets 0 and 1, like m0001 and m0002 before
		mirror.publish(1, makeIDs("m", 1, 100)...)
		second := mirror.start(count, nil)
		mirror.waitCommitted()
		mirror.expectOnce(append(makeIDs("m", 1, 100), "new 1", "new 2")...)
		if c := second.consumer.Counts(); c.Applied != 2 || c.Duplicates != 100 || c.Conflicts != 0 {
			t.Errorf("%+v", c)
		}
	})
}

func TestStrangeRecords(t *testing.T) {
	t.Run("trap_83_records_of_nothing_of_a_thousand_headers_and_of_the_largest_size_take_effect_as_they_are", func(t *testing.T) {
		w := newWorld(t, 1, "max.message.bytes="+strconv.Itoa(20<<20))
		bodies := map[string][]byte{
			"empty": {}, "null": nil, "one": {0}, "largest": bytes.Repeat([]byte("x"), kafkaDefaultMost), "no key": []byte("k"), "headers": []byte("h"),
		}
		for id, body := range bodies {
			r := w.order(0, id)
			r.Value = body
			switch id {
			case "no key":
				r.Key = nil
			case "headers":
				for n := range 1000 - len(r.Headers) {
					r.Headers = append(r.Headers, kgo.RecordHeader{Key: fmt.Sprint("h", n), Value: []byte{byte(n)}})
				}
			}
			w.produce(r)
		}
		seen := make(chan error, 100)
		p := w.start(func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			seen <- describeDifference(m, bodies[m.Identity.ID])
			return count(ctx, tx, m)
		}, nil)
		w.waitCommitted()
		for id := range bodies {
			w.expectOnce(id)
			if err := <-seen; err != nil {
				t.Error(err)
			}
		}
		if c := p.consumer.Counts(); c.Applied != 6 {
			t.Errorf("%+v", c)
		}
	})
	t.Run("trap_82_a_record_above_the_limit_is_parked_with_its_beginning_and_its_neighbours_take_effect", func(t *testing.T) {
		w := newWorld(t, 1, "max.message.bytes="+strconv.Itoa(20<<20))
		large := w.order(0, "large")
		large.Value = bytes.Repeat([]byte("x"), 1<<20+1)
		limit := w.order(0, "limit")
		limit.Value = large.Value[:1<<20]
		w.produce(w.order(0, "before"), large, limit, w.order(0, "after"))
		w.start(count, func(c *kafka.Config) { c.MaxRecord = 1 << 20 })
		w.waitCommitted()
		w.expectOnce("before", "limit", "after")
		rows, err := w.store.Rows(context.Background(), store.RowFilter{Bodies: true})
		if err != nil || len(rows) != 1 || rows[0].Reason != semel.ReasonTooLarge || len(rows[0].Message.Body) != 64<<10 || w.effect("large") != "" {
			t.Errorf("%d rows, %v, effect %q", len(rows), err, w.effect("large"))
		}
	})
	t.Run("records_whose_clocks_are_years_off_and_run_backwards_take_effect_in_the_order_of_the_log", func(t *testing.T) {
		w := newWorld(t, 1)
		for i, at := range []time.Time{time.Unix(0, 0), time.Now().Add(50 * time.Minute), time.Now().Add(-30 * 365 * 24 * time.Hour), time.Now()} {
			r := w.order(0, fmt.Sprint(i))
			r.Timestamp = at
			w.produce(r)
		}
		order := make(chan string, 10)
		w.start(func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			order <- m.Identity.ID
			return count(ctx, tx, m)
		}, nil)
		w.waitCommitted()
		w.expectOnce("0", "1", "2", "3")
		for i := range 4 {
			if got := <-order; got != fmt.Sprint(i) {
				t.Errorf("%s ran as number %d", got, i)
			}
		}
	})
}

// kafkaDefaultMost is the size of a value that just fits into the default limit of brokers.
const kafkaDefaultMost = 1 << 20

// describeDifference returns an error that describes how a message differs from the written record.
func describeDifference(m *semel.Message, body []byte) error {
	_, tombstone := m.Headers.Get(kafka.HeaderTombstone)
	switch {
	case !bytes.Equal(m.Body, body):
		return fmt.Errorf("%s: %d bytes came, %d were written", m.Identity.ID, len(m.Body), len(body))
	case tombstone != (m.Identity.ID == "null"):
		return fmt.Errorf("%s: tombstone %v", m.Identity.ID, tombstone)
	case (m.Key == nil) != (m.Identity.ID == "no key"):
		return fmt.Errorf("%s: its key is %q", m.Identity.ID, m.Key)
	case m.Identity.ID == "headers" && len(m.Headers) != 1000:
		return fmt.Errorf("%d headers of 1,000", len(m.Headers))
	}
	return nil
}
