package kafka

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// answerFetches answers fetches of partition 0 if the function answer returns true, and calls the function wait before
// each answer. The result is a counter of the answers.
func (w *world) answerFetches(answer func(kmsg.FetchRequestTopicPartition, *kmsg.FetchResponseTopicPartition) bool, wait func()) *atomic.Int64 {
	done := new(atomic.Int64)
	w.control(kmsg.Fetch, func(request kmsg.Request) kmsg.Response {
		asked := request.(*kmsg.FetchRequest)
		response := asked.ResponseKind().(*kmsg.FetchResponse)
		for _, t := range asked.Topics {
			for _, p := range t.Partitions {
				topic, partition := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
				topic.Topic, topic.TopicID = t.Topic, t.TopicID
				if p.Partition == 0 && answer(p, &partition) {
					topic.Partitions = append(topic.Partitions, partition)
					response.Topics = append(response.Topics, topic)
				}
			}
		}
		if len(response.Topics) == 0 {
			return nil
		}
		done.Add(1)
		w.cluster.SleepControl(wait)
		return response
	})
	return done
}

// spoil makes the brokers answer some fetches at an offset of partition 0 with a batch whose checksum is wrong. The
// result is a counter of the wrong answers.
func (w *world) spoil(at, times int64) *atomic.Int64 {
	n := int64(0)
	return w.answerFetches(func(asked kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) bool {
		if asked.FetchOffset != at || n >= times {
			return false
		}
		n++
		p.HighWatermark, p.LastStableOffset, p.LogStartOffset = at+2, at+2, 0
		p.RecordBatches = wrongBatch(at)
		return true
	}, func() {})
}

// wrongBatch returns a batch of one record with a wrong checksum.
func wrongBatch(at int64) []byte {
	batch := kmsg.NewRecordBatch()
	batch.FirstOffset, batch.Magic, batch.NumRecords, batch.Records = at, 2, 1, []byte("spoilt")
	batch.CRC = 1
	batch.Length = int32(len(batch.AppendTo(nil)) - 12)
	return batch.AppendTo(nil)
}

func TestABatchThatCannotBeRead(t *testing.T) {
	inWorld(t, "I0_its_lane_stands_still_by_name_and_the_others_go_on", 2, func(t *testing.T, w *world) {
		text := w.startWithLog(nil)
		w.publish(0, "a")
		w.waitCommitted(time.Minute)
		corruptBatch := w.spoil(1, 1<<40)
		w.publish(0, "b", "c")
		pass(time.Minute)
		w.publish(1, "beside")
		pass(2 * time.Minute)
		w.expectOnce("a", "beside")
		w.expectNoEffect("b", "c")
		if n := corruptBatch.Load(); n == 0 || n > 10 {
			t.Errorf("the batch was fetched %d times", n)
		}
		logSays(t, text, "topic orders, partition 0: the batch at offset 1 cannot be read", 4, 12)
		w.wantCommitted(0, 1)
	})
	inWorld(t, "I0_what_was_spoilt_on_the_way_is_read_again", 1, func(t *testing.T, w *world) {
		w.startWithLog(nil)
		w.publish(0, "a")
		w.waitCommitted(time.Minute)
		corruptBatch := w.spoil(1, 1)
		w.publish(0, "b", "c")
		w.waitCommitted(2 * time.Minute)
		w.expectOnce("a", "b", "c")
		if corruptBatch.Load() != 1 {
			t.Error("nothing was spoilt")
		}
	})
}

// refuseFetches makes the brokers answer that partition 0 is damaged, until the test sets mended to true.
func (w *world) refuseFetches() (refused *atomic.Int64, mended *atomic.Bool) {
	mended = new(atomic.Bool)
	refused = w.answerFetches(func(_ kmsg.FetchRequestTopicPartition, p *kmsg.FetchResponseTopicPartition) bool {
		p.ErrorCode = kerr.CorruptMessage.Code
		return !mended.Load()
	}, func() { pass(200 * time.Millisecond) }) // the pause is needed because the client repeats the request at once
	return refused, mended
}

func TestABatchThatTheBrokersCannotRead(t *testing.T) {
	inWorld(t, "I0_a_partition_that_is_not_read_is_told_with_the_brokers_answer", 1, func(t *testing.T, w *world) {
		text := w.startWithLog(nil)
		w.publish(0, "a")
		w.waitCommitted(time.Minute)
		refused, mended := w.refuseFetches()
		w.publish(0, "b")
		pass(5 * time.Minute)
		w.expectOnce("a")
		if refused.Load() == 0 {
			t.Fatal("no fetch failed")
		}
		if n := strings.Count(text.String(), "topic orders, partition 0: nothing can be read after offset 1"); n < 3 || n > 20 || !strings.Contains(text.String(), "CORRUPT_MESSAGE") {
			t.Errorf("the log says it %d times:\n%.3000s", n, text.String())
		}
		mended.Store(true)
		w.waitCommitted(time.Minute)
		w.expectOnce("b")
	})
	inWorld(t, "I0_a_log_that_ends_behind_its_last_record_is_no_alarm", 1, func(t *testing.T, w *world) {
		text := w.startWithLog(nil)
		w.publish(0, "a")
		w.finish(w.begin("b", 0, "aborted"), kgo.TryAbort)
		pass(5 * time.Minute)
		if strings.Contains(text.String(), "nothing is read") {
			t.Errorf("the log says:\n%s", text.String())
		}
	})
}

// A number of fetches that is too large: so many fetches without a pause would mean that virtual time never advances.
const hot = 3000

// refuse makes the brokers answer reads of partition 0 with a temporary error. The result is a counter of the refused
// reads.
func (w *world) refuse(err *kerr.Error) (*kfake.FaultHandle, *atomic.Int64) {
	refused := new(atomic.Int64)
	return w.cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Fetch}, Partitions: []int32{0}, Err: err, Count: -1,
		When: func(kmsg.Request) bool { return refused.Add(1) < hot },
	}), refused
}

func TestAPartitionThatTheBrokersRefuseBesideOneThatTheyRead(t *testing.T) {
	t.Run("I0_it_is_asked_for_with_pauses_and_the_other_goes_on", func(t *testing.T) {
		for _, err := range []*kerr.Error{kerr.CorruptMessage, kerr.KafkaStorageError, kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.OffsetNotAvailable, kerr.FencedLeaderEpoch} {
			bubble(t, err.Message, func(t *testing.T) { besideRefused(t, err) })
		}
	})
}

func besideRefused(t *testing.T, err *kerr.Error) {
	w := newWorld(t, 2)
	w.publish(1, "beside")
	w.start(count, func(c *Config) { c.Start = Start{Now: true} }, nil)
	w.waitUntil(time.Minute, "the group has begun", func() bool { return w.committedOffset(1) == 1 })
	mended, refused := w.refuse(err)
	w.publish(0, "b")
	for n := range 10 {
		id := numberedIDs("beside", n, n)[0]
		w.publish(1, id)
		w.waitUntil(time.Second, "the other partition continues", func() bool { return w.effect(id) == 1 })
		pass(5 * time.Second)
	}
	if n := refused.Load(); n < 10 || n > hot/2 { // each fetch counts twice
		t.Errorf("the partition was requested %d times within a minute", n)
	}
	w.expectNoEffect("b")
	mended.Remove()
	w.waitCommitted(time.Minute)
	w.expectOnce("b")
}
