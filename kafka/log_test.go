package kafka

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// begin opens a transaction and publishes messages in this transaction. The test ends the transaction.
func (w *world) begin(name string, partition int32, ids ...string) *kgo.Client {
	w.t.Helper()
	c := w.client(kgo.TransactionalID(name), kgo.TransactionTimeout(10*time.Minute))
	must(w.t, c.BeginTransaction())
	for _, id := range ids {
		must(w.t, c.ProduceSync(context.Background(), order(partition, id)).FirstErr())
	}
	return c
}

func (w *world) finish(c *kgo.Client, how kgo.TransactionEndTry) {
	w.t.Helper()
	must(w.t, c.EndTransaction(context.Background(), how))
}

// laneWatch stores the last state that Observe got for each partition.
type laneWatch struct {
	mu   sync.Mutex
	last map[int32]LaneState
}

func (s *laneWatch) observe(all []LaneState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[int32]LaneState{}
	}
	for _, l := range all {
		s.last[l.Partition] = l
	}
}

func (s *laneWatch) stateOf(partition int32) LaneState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[partition]
}

func TestLogsWithGaps(t *testing.T) {
	inWorld(t, "trap_34_transactions_aborts_and_compaction_leave_gaps_and_nothing_is_missed", 1, func(t *testing.T, w *world) {
		admin := kadm.NewClient(w.producer)
		if _, err := admin.AlterTopicConfigs(context.Background(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: kadm.StringPtr("compact")}}, theTopic); err != nil {
			t.Fatal(err)
		}
		var want []string
		for n := range 6 {
			gone := order(0, fmt.Sprint("replaced", n))
			kept := order(0, fmt.Sprint("kept", n))
			gone.Key, kept.Key = []byte{byte(n)}, []byte{byte(n)}
			w.produce(gone, kept)
			w.finish(w.begin(fmt.Sprint("a", n), 0, fmt.Sprint("aborted", n)), kgo.TryAbort)
			w.finish(w.begin(fmt.Sprint("c", n), 0, fmt.Sprint("committed", n)), kgo.TryCommit)
			want = append(want, fmt.Sprint("kept", n))
		}
		w.cluster.Compact()
		want = append(want, "committed5") // the other records also have the key of committed5
		p := w.startSettled(nil)
		w.expectOnce(want...)
		if c := p.consumer.Counts(); c.Applied >= 18 || w.end(0) < 30 {
			t.Errorf("no record was compacted: %+v, the log ends at %d", c, w.end(0))
		}
		w.publish(0, "after")
		w.waitCommitted(time.Minute)
		w.expectOnce("after")
	})
	inWorld(t, "trap_35_the_lag_is_zero_although_the_log_ends_with_what_is_never_delivered", 1, func(t *testing.T, w *world) {
		var seen laneWatch
		p := w.start(count, func(c *Config) { c.Observe = seen.observe }, nil)
		w.finish(w.begin("a", 0, "committed"), kgo.TryCommit)
		w.waitCommitted(time.Minute)
		w.finish(w.begin("b", 0, "aborted 1", "aborted 2"), kgo.TryAbort)
		w.waitCommitted(time.Minute)
		pass(2 * time.Second)
		if s := seen.stateOf(0); s.Committed != s.End || s.Delivered != s.End || s.End != 5 || s.Unsettled != 0 || s.HeldUp {
			t.Errorf("%+v", s)
		}
		if c := p.consumer.Counts(); c.Applied != 1 || c.Deliveries != 1 {
			t.Errorf("%+v", c)
		}
	})
	inWorld(t, "trap_40_what_was_aborted_takes_no_effect_however_long_the_transaction_was_open", 1, func(t *testing.T, w *world) {
		p := w.start(count, nil, nil)
		open := w.begin("a", 0, "aborted 1")
		w.publish(0, "behind it")
		pass(3 * time.Minute)
		if c := p.consumer.Counts(); c.Deliveries != 0 {
			t.Errorf("%+v", c)
		}
		w.finish(open, kgo.TryAbort)
		w.waitCommitted(time.Minute)
		w.expectOnce("behind it")
		w.expectNoEffect("aborted 1")
	})
}

func TestATransactionThatHangs(t *testing.T) {
	inWorld(t, "trap_42_a_transaction_that_stays_open_is_told_and_its_end_is_the_end_of_it", 2, func(t *testing.T, w *world) {
		var seen laneWatch
		var text lockedBuffer
		w.start(count, func(c *Config) {
			c.Observe, c.Logger = seen.observe, logTo(&text)
		}, nil)
		w.publish(0, "before")
		w.waitCommitted(time.Minute)
		open := w.begin("hangs", 0, "inside")
		w.publish(0, "behind")
		w.publish(1, "beside")
		pass(5 * time.Second)
		w.expectOnce("before", "beside")
		if s := seen.stateOf(0); !s.HeldUp || s.Delivered != 1 || s.End != 3 {
			t.Errorf("no held-up lane is reported: %+v", s)
		}
		if s := seen.stateOf(1); s.HeldUp {
			t.Errorf("a lane without open transactions is reported as held up: %+v", s)
		}
		if strings.Contains(text.String(), "transaction") {
			t.Errorf("a transaction of five seconds is in the log: %s", text.String())
		}
		pass(3 * time.Minute)
		logSays(t, &text, "a transaction stays open", 1, 1)
		w.finish(open, kgo.TryCommit)
		w.waitCommitted(time.Minute)
		w.expectOnce("before", "inside", "behind", "beside")
		pass(2 * time.Second)
		if s := seen.stateOf(0); s.HeldUp || s.Committed != s.End {
			t.Errorf("%+v", s)
		}
	})
}

// lockedBuffer is a log that several goroutines may write.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func TestOffsetsOfAGroupThatAreGone(t *testing.T) {
	inWorld(t, "trap_36_when_the_groups_offsets_are_gone_everything_comes_again_and_nothing_happens", 2, func(t *testing.T, w *world) {
		ids := append(numberedIDs("a", 1, 300), numberedIDs("b", 1, 300)...)
		w.publish(0, ids[:300]...)
		w.publish(1, ids[300:]...)
		w.runOnce(nil)
		if _, err := kadm.NewClient(w.producer).DeleteGroup(context.Background(), theGroup); err != nil {
			t.Fatal(err)
		}
		ran := 0
		second := w.start(func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error { ran++; return count(ctx, tx, m) }, nil, nil)
		w.waitCommitted(time.Minute)
		w.expectOnce(ids...)
		if c := second.consumer.Counts(); c.Duplicates != 600 || c.Applied != 0 || ran != 0 {
			t.Errorf("%+v, the handler ran %d times", c, ran)
		}
	})
	inWorld(t, "trap_36_offsets_whose_records_are_gone_are_told_and_nothing_is_skipped", 2, func(t *testing.T, w *world) {
		w.publish(0, numberedIDs("a", 1, 10)...)
		w.runOnce(nil)
		w.publish(0, numberedIDs("a", 11, 30)...)
		w.publish(1, "beside")
		must(t, w.cluster.DeleteRecords(theTopic, 0, 20))
		var text lockedBuffer
		fetches := 0
		w.cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
			w.cluster.KeepControl()
			if fetches++; fetches > 2000 {
				return nil, errSpoilt, true // an error, because otherwise virtual time would never advance
			}
			return nil, nil, false
		})
		second := w.start(count, func(c *Config) { c.Logger = logTo(&text) }, nil)
		w.waitUntil(time.Minute, "the other lane continues", func() bool { return w.effect("beside") == 1 })
		pass(time.Minute)
		if at := w.committedOffset(0); at != 10 || w.effect("a0021") != 0 {
			t.Errorf("records were skipped automatically: the group's offset is %d", at)
		}
		expectContains(t, text.String(), "partition 0", "offset 10", "begins at 20", "--reset-offsets")
		// Now an operator sets the offset.
		_ = second.leave()
		if fetches > 500 {
			t.Errorf("%d fetches within a minute: the brokers are asked repeatedly", fetches)
		}
		var offsets kadm.Offsets
		offsets.AddOffset(theTopic, 0, 20, -1)
		must(t, kadm.NewClient(w.producer).CommitAllOffsets(context.Background(), theGroup, offsets))
		w.startSettled(nil)
		w.expectOnce(numberedIDs("a", 21, 30)...)
	})
}

func TestPartitionsThatAreAdded(t *testing.T) {
	for name, next := range map[string]bool{
		"trap_37_a_partition_that_is_added_later_is_read_from_its_beginning":                        false,
		"trap_37_a_partition_that_is_added_later_is_read_from_its_beginning_balanced_by_the_broker": true,
	} {
		inWorld(t, name, 1, func(t *testing.T, w *world) {
			w.publish(0, "history")
			w.start(count, func(c *Config) { c.Start, c.NextGen = Start{Now: true}, next }, nil)
			w.waitUntil(time.Minute, "the group has begun", func() bool { return w.committedOffset(0) == 1 })
			if _, err := kadm.NewClient(w.producer).CreatePartitions(context.Background(), 2, theTopic); err != nil {
				t.Fatal(err)
			}
			w.producer = w.client()
			w.publish(1, numberedIDs("b", 1, 20)...) // written before any member knows the partition
			w.publish(2, numberedIDs("c", 1, 20)...)
			w.waitCommitted(5 * time.Minute)
			w.expectOnce(numberedIDs("b", 1, 20)...)
			w.expectOnce(numberedIDs("c", 1, 20)...)
			w.expectNoEffect("history")
		})
	}
}

func TestOffsetsThatAreStillInATransaction(t *testing.T) {
	inWorld(t, "trap_39_a_lane_is_not_read_from_an_offset_that_an_open_transaction_is_about_to_move", 1, func(t *testing.T, w *world) {
		w.publish(0, numberedIDs("m", 1, 10)...)
		c := w.begin("mover", 0, "m0011")
		id, epoch, err := c.ProducerID(context.Background())
		must(t, err)
		w.moveInTransaction("mover", id, epoch, 7)
		w.start(count, func(c *Config) { c.NextGen = true }, nil)
		pass(20 * time.Second)
		for _, m := range numberedIDs("m", 1, 10) {
			w.expectNoEffect(m)
		}
		w.finish(c, kgo.TryCommit)
		w.waitCommitted(5 * time.Minute)
		w.expectOnce(numberedIDs("m", 8, 11)...)
		w.expectNoEffect("m0007")
	})
}

// moveInTransaction moves the offset of the group in a transaction, while the group has no members.
func (w *world) moveInTransaction(name string, id int64, epoch int16, offset int64) {
	w.t.Helper()
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = name, id, epoch, theGroup
	added, err := add.RequestWith(context.Background(), w.producer)
	if err == nil {
		err = kerr.ErrorForCode(added.ErrorCode)
	}
	must(w.t, err)
	move := kmsg.NewPtrTxnOffsetCommitRequest()
	move.TransactionalID, move.ProducerID, move.ProducerEpoch, move.Group, move.Generation = name, id, epoch, theGroup, -1
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic, topic.TopicID = theTopic, w.cluster.TopicInfo(theTopic).TopicID
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Offset = offset
	topic.Partitions = append(topic.Partitions, partition)
	move.Topics = append(move.Topics, topic)
	moved, err := move.RequestWith(context.Background(), w.producer)
	if err == nil {
		err = kerr.ErrorForCode(moved.Topics[0].Partitions[0].ErrorCode)
	}
	must(w.t, err)
}
