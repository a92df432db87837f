package kafka

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// spoil lets the brokers answer so many fetches at an offset of partition 0
// with a batch whose checksum is wrong. It returns how many they did.
func (w *world) spoil(at int64, times int64) *atomic.Int64 {
	var done atomic.Int64
	w.cluster.ControlKey(int16(kmsg.Fetch), func(request kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		asked := request.(*kmsg.FetchRequest)
		response := asked.ResponseKind().(*kmsg.FetchResponse)
		for _, t := range asked.Topics {
			topic := kmsg.NewFetchResponseTopic()
			topic.Topic, topic.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				if p.Partition != 0 || p.FetchOffset != at || done.Load() >= times {
					continue
				}
				partition := kmsg.NewFetchResponseTopicPartition()
				partition.HighWatermark, partition.LastStableOffset, partition.LogStartOffset = at+2, at+2, 0
				partition.RecordBatches = wrongBatch(at)
				topic.Partitions = append(topic.Partitions, partition)
				response.Topics = append(response.Topics, topic)
			}
		}
		if len(response.Topics) == 0 {
			return nil, nil, false
		}
		done.Add(1)
		return response, nil, true
	})
	return &done
}

// wrongBatch is a batch of one record whose checksum does not fit.
func wrongBatch(at int64) []byte {
	batch := kmsg.NewRecordBatch()
	batch.FirstOffset, batch.Magic, batch.NumRecords, batch.Records = at, 2, 1, []byte("spoilt")
	batch.CRC = 1
	batch.Length = int32(len(batch.AppendTo(nil)) - 12)
	return batch.AppendTo(nil)
}

func TestABatchThatCannotBeRead(t *testing.T) {
	bubble(t, "I0_its_lane_stands_still_by_name_and_the_others_go_on", func(t *testing.T) {
		w := newWorld(t, 2)
		text := w.logged(nil)
		w.publish(0, "a")
		w.settles(time.Minute)
		corruptBatch := w.spoil(1, 1<<40)
		w.publish(0, "b", "c")
		pass(time.Minute)
		w.publish(1, "beside")
		pass(2 * time.Minute)
		w.once("a", "beside")
		w.without("b", "c")
		if n := corruptBatch.Load(); n == 0 || n > 10 {
			t.Errorf("it was fetched %d times", n)
		}
		if n := strings.Count(text.String(), "topic orders, partition 0: the batch at offset 1 cannot be read"); n < 4 || n > 12 {
			t.Errorf("the log says it %d times:\n%.3000s", n, text.String())
		}
		if at := w.committed(0); at != 1 {
			t.Errorf("the group's offset is %d", at)
		}
	})
	bubble(t, "I0_what_was_spoilt_on_the_way_is_read_again", func(t *testing.T) {
		w := newWorld(t, 1)
		w.logged(nil)
		w.publish(0, "a")
		w.settles(time.Minute)
		corruptBatch := w.spoil(1, 1)
		w.publish(0, "b", "c")
		w.settles(2 * time.Minute)
		w.once("a", "b", "c")
		if corruptBatch.Load() != 1 {
			t.Error("nothing was spoilt")
		}
	})
}

// refuseFetches lets the brokers find partition 0 damaged until it is mended.
func (w *world) refuseFetches() (refused *atomic.Int64, mended *atomic.Bool) {
	refused, mended = new(atomic.Int64), new(atomic.Bool)
	w.cluster.ControlKey(int16(kmsg.Fetch), func(request kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		asked := request.(*kmsg.FetchRequest)
		response := asked.ResponseKind().(*kmsg.FetchResponse)
		for _, t := range asked.Topics {
			for _, p := range t.Partitions {
				if p.Partition == 0 && !mended.Load() {
					topic, partition := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
					topic.Topic, topic.TopicID, partition.ErrorCode = t.Topic, t.TopicID, kerr.CorruptMessage.Code
					topic.Partitions = append(topic.Partitions, partition)
					response.Topics = append(response.Topics, topic)
				}
			}
		}
		if len(response.Topics) == 0 {
			return nil, nil, false
		}
		refused.Add(1)
		w.cluster.SleepControl(func() { pass(200 * time.Millisecond) }) // the client asks again at once
		return response, nil, true
	})
	return refused, mended
}

func TestABatchThatTheBrokersCannotRead(t *testing.T) {
	bubble(t, "I0_a_partition_that_is_not_read_is_told_with_the_brokers_answer", func(t *testing.T) {
		w := newWorld(t, 1)
		text := w.logged(nil)
		w.publish(0, "a")
		w.settles(time.Minute)
		refused, mended := w.refuseFetches()
		w.publish(0, "b")
		pass(5 * time.Minute)
		w.once("a")
		if refused.Load() == 0 {
			t.Fatal("no fetch failed")
		}
		if n := strings.Count(text.String(), "topic orders, partition 0: nothing is read behind offset 1"); n < 3 || n > 20 || !strings.Contains(text.String(), "CORRUPT_MESSAGE") {
			t.Errorf("the log says it %d times:\n%.3000s", n, text.String())
		}
		mended.Store(true)
		w.settles(time.Minute)
		w.once("b")
	})
	bubble(t, "I0_a_log_that_ends_behind_its_last_record_is_no_alarm", func(t *testing.T) {
		w := newWorld(t, 1)
		text := w.logged(nil)
		w.publish(0, "a")
		w.finish(w.begin("b", 0, "aborted"), kgo.TryAbort)
		pass(5 * time.Minute)
		if strings.Contains(text.String(), "nothing is read") {
			t.Errorf("the log says:\n%s", text.String())
		}
	})
}
