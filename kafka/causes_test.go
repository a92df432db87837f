package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/memstore"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The test reproduces each cause of redelivered messages with a Kafka broker. At the end, each message has had one
// effect, all deliveries are acked, and the redelivered messages were counted as duplicates.
func TestCausesOfDuplicates(t *testing.T) {
	ids := numberedIDs("m", 1, 30)
	for name, cause := range map[string]func(*world) *process{
		"L7_producer_retry":           producerRetry,
		"L7_relay_retry":              relayRetry,
		"L7_crash_after_effect":       func(w *world) *process { return crashAt(w, faults.AfterCommit) },
		"L7_crash_before_settle":      func(w *world) *process { return crashAt(w, faults.BeforeSettle) },
		"L7_rebalance":                rebalance,
		"L7_retry_topic":              retryTopic,
		"L7_time_out_hiding_success":  hiddenSuccess,
		"L7_commit_of_offset_refused": refusedOffset,
		"L7_offset_reset":             offsetReset,
	} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t, 2, kfake.SeedTopics(1, "orders-retry"))
			last := cause(w)
			w.waitCommitted(5 * time.Minute)
			w.waitUntil(time.Minute, "all is applied", func() bool { return last.consumer.Counts().InFlight == 0 })
			w.expectOnce(ids...)
			c := last.consumer.Counts()
			if c.Duplicates == 0 || c.Conflicts != 0 || c.Parked != 0 || c.Failed != 0 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// producerRetry: a producer gets no answer and writes its records again in a new session.
func producerRetry(w *world) *process {
	p := w.start(count, nil, nil)
	w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut, Count: 3})
	for _, id := range numberedIDs("m", 1, 30) {
		for range 2 { // the record is written although the answer is an error
			c := w.client(kgo.RecordRetries(0), kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()))
			if c.ProduceSync(context.Background(), order(0, id)).FirstErr() == nil {
				break
			}
		}
	}
	w.publish(0, "m0001")
	return p
}

// relayRetry: the relay of an outbox dies before it stores which messages it has sent, and sends some of these messages
// again.
func relayRetry(w *world) *process {
	p := w.start(count, nil, nil)
	w.publish(0, numberedIDs("m", 1, 20)...)
	w.publish(0, numberedIDs("m", 11, 30)...)
	return p
}

func crashAt(w *world, point faults.Point) *process {
	w.publish(0, numberedIDs("m", 1, 30)...)
	w.killAt(point, count)
	return w.start(count, nil, nil)
}

// rebalance: a member freezes while it handles messages, for longer than its session timeout.
func rebalance(w *world) *process {
	s := newStuck()
	w.publish(0, numberedIDs("m", 1, 15)...)
	w.publish(1, numberedIDs("m", 16, 30)...)
	old := w.start(s.handle, nil, nil)
	<-s.began
	old.wire.freeze()
	other := w.start(count, nil, nil)
	pass(20 * time.Second)
	close(s.goOn)
	pass(time.Minute)
	old.wire.thaw()
	return other
}

// retryTopic: another application's retry topic delivers applied messages again.
func retryTopic(w *world) *process {
	w.publish(0, numberedIDs("m", 1, 30)...)
	p := w.startSettled(func(c *Config) { c.Topics = append(c.Topics, "orders-retry") })
	for _, id := range numberedIDs("m", 10, 20) {
		again := order(0, id)
		again.Topic = "orders-retry"
		again.Headers = append(again.Headers, kgo.RecordHeader{Key: "retry-count", Value: []byte("1")})
		w.produce(again)
	}
	w.waitUntil(time.Minute, "they came again", func() bool { return p.consumer.Counts().Duplicates == 11 })
	return p
}

// hiddenSuccess: commits of the store succeed, but their answers are lost.
func hiddenSuccess(w *world) *process {
	lost := 0
	w.store = memstore.New(memstore.Fail(func(op string) error {
		if op == "commit-after" && lost < 3 {
			lost++
			return context.DeadlineExceeded
		}
		return nil
	}))
	w.publish(0, numberedIDs("m", 1, 30)...)
	p := w.start(count, nil, func(c *settings) { c.Workers, c.Batch.MaxSize = 1, 5 })
	w.waitUntil(time.Minute, "all is applied", func() bool { return w.effect("m0030") == 1 })
	if lost != 3 {
		w.t.Errorf("%d answers were lost", lost)
	}
	w.publish(0, "m0001", "m0030") // as after the timeout of a producer
	return p
}

// refusedOffset: the group refuses an offset, and the member then leaves the group.
func refusedOffset(w *world) *process {
	fault := w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.CoordinatorLoadInProgress, Count: -1})
	w.publish(0, numberedIDs("m", 1, 30)...)
	first := w.start(count, nil, func(c *settings) { c.Drain = time.Second })
	w.waitUntil(time.Minute, "all is applied", func() bool { return w.effect("m0030") == 1 })
	_ = first.leave() // leave reports that offsets are not committed
	fault.Remove()
	return w.start(count, nil, nil)
}

// offsetReset: an operator sets the group's offset back.
func offsetReset(w *world) *process {
	w.publish(0, numberedIDs("m", 1, 30)...)
	w.runOnce(nil)
	var offsets kadm.Offsets
	offsets.AddOffset(theTopic, 0, 5, -1)
	must(w.t, kadm.NewClient(w.producer).CommitAllOffsets(context.Background(), theGroup, offsets))
	return w.start(count, nil, nil)
}
