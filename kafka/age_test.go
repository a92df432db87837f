package kafka

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/semel-go/semel/memstore"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// newReader returns a source for the test's topic. The test itself acks and nacks the deliveries of this source.
func (w *world) newReader(change func(*Config)) *reader {
	w.t.Helper()
	c := Config{Brokers: w.cluster.ListenAddrs(), Topics: []string{theTopic}, Group: theGroup}
	if change != nil {
		change(&c)
	}
	r := read(w.t, c)
	r.brokers.dial = w.network.DialContext
	return r
}

// publishAt publishes a message with a given time.
func (w *world) publishAt(partition int32, id string, at time.Time) {
	w.t.Helper()
	r := order(partition, id)
	r.Timestamp = at
	w.produce(r)
}

// reportedAges returns the ages that a source reports, by lane.
func reportedAges(s *Source) (map[string]time.Time, bool) {
	lanes, all := s.Info().Ages()
	told := map[string]time.Time{}
	for _, l := range lanes {
		told[l.Lane] = l.Oldest
	}
	return told, all
}

// expectAges fails the test unless a source reports exactly the expected lanes.
func (w *world) expectAges(s *Source, all bool, expected map[string]time.Time) {
	w.t.Helper()
	told, known := reportedAges(s)
	if known != all || !maps.EqualFunc(told, expected, time.Time.Equal) {
		w.t.Errorf("the source reports %v, all %t; not %v, all %t", told, known, expected, all)
	}
}

// awaitAges waits until a source reports exactly the expected lanes, and reports that the list is complete.
func (w *world) awaitAges(s *Source, expected map[string]time.Time) {
	w.t.Helper()
	w.waitUntil(3*time.Minute, "the source reports the ages", func() bool {
		told, all := reportedAges(s)
		return all && maps.EqualFunc(told, expected, time.Time.Equal)
	})
}

const lane0, lane1 = theTopic + "/0", theTopic + "/1"

// longAgo returns a time some days ago, rounded to the millisecond as in a record.
func longAgo(days int) time.Time {
	return time.Now().Add(-time.Duration(days) * 24 * time.Hour).Truncate(time.Millisecond)
}

func TestHowFarLanesAre(t *testing.T) {
	inWorld(t, "H2_a_lane_that_was_just_given_is_not_known_until_something_of_it_is_read", 1, func(t *testing.T, w *world) {
		at := longAgo(3)
		w.publishAt(0, "a", at)
		refused, mended := w.refuseFetches()
		r := w.newReader(nil)
		w.horizon(r.Source) // the brokers answer, but the group has not assigned lanes yet
		w.expectAges(r.Source, false, nil)
		stop := r.keepFetching(nil)
		w.waitUntil(time.Minute, "it is read", func() bool { return refused.Load() > 0 })
		pass(5 * time.Minute)
		w.expectAges(r.Source, false, nil)
		mended.Store(true)
		w.waitUntil(5*time.Minute, "the record is read", func() bool { told, all := reportedAges(r.Source); return all && len(told) == 1 })
		w.expectAges(r.Source, true, map[string]time.Time{lane0: at})
		stop()
	})
	inWorld(t, "H2_a_lane_is_settled_when_all_is_and_the_group_knows_it", 2, func(t *testing.T, w *world) {
		at := longAgo(3)
		w.publishAt(0, "a", at)
		r := w.newReader(nil)
		got := r.take(1)
		if origin := got[0].Message.Origin.Time(); !origin.Equal(at.Truncate(time.Second)) {
			t.Errorf("the record's time is %v, not %v", origin, at)
		}
		w.awaitAges(r.Source, map[string]time.Time{lane0: at, lane1: {}})
		fault := w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.CoordinatorLoadInProgress, Count: -1})
		ctx, cancel := contextFor(t, time.Minute)
		if _, err := r.Settle(ctx, settlements(semel.Ack, got)); err == nil {
			t.Error("the group took the offset")
		}
		cancel()
		pass(time.Minute)
		w.expectAges(r.Source, true, map[string]time.Time{lane0: at, lane1: {}})
		fault.Remove()
		r.ackPatiently(got...)
		w.awaitAges(r.Source, map[string]time.Time{lane0: {}, lane1: {}})
	})
	inWorld(t, "H2_a_lane_without_anything_to_read_is_settled", 1, func(t *testing.T, w *world) {
		w.publish(0, "a", "b")
		must(t, w.start(count, nil, whenIdle).waitEnd(t))
		p := w.start(count, nil, nil)
		w.awaitAges(p.source, map[string]time.Time{lane0: {}})
	})
	inWorld(t, "trap_T63_one_old_record_that_is_not_settled_beside_new_ones_that_are", 1, func(t *testing.T, w *world) {
		at := longAgo(30)
		w.publish(0, "before")
		w.publishAt(0, "old", at)
		w.publish(0, numberedIDs("new", 1, 20)...)
		r := w.newReader(nil)
		got := r.take(22)
		r.ack(append(got[:1:1], got[2:]...)...)
		w.expectAges(r.Source, true, map[string]time.Time{lane0: at})
		r.settle(semel.Nack, got[1])
		w.expectAges(r.Source, true, map[string]time.Time{lane0: at})
		r.ack(r.take(1)...)
		w.awaitAges(r.Source, map[string]time.Time{lane0: {}})
	})
	inWorld(t, "H2_a_record_whose_time_is_ahead_is_no_younger_than_its_delivery", 1, func(t *testing.T, w *world) {
		w.publishAt(0, "a", longAgo(-365))
		r := w.newReader(nil)
		before := time.Now()
		got := r.take(1)
		after := time.Now()
		pass(time.Hour)
		told, all := reportedAges(r.Source)
		if at := told[lane0]; !all || at.Before(before) || at.After(after) {
			t.Errorf("the source reports %v, all %t", told, all)
		}
		r.ack(got...)
	})
}

func TestLanesThatAreStuck(t *testing.T) {
	inWorld(t, "trap_T63_one_stuck_partition_beside_busy_ones", 2, func(t *testing.T, w *world) {
		at := longAgo(2)
		w.publishAt(0, "stuck", at)
		free := make(chan struct{})
		sticks := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "stuck" {
				select {
				case <-free:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return count(ctx, tx, m)
		}
		p := w.start(sticks, nil, func(c *settings) { c.Workers, c.Timeout = 2, 24*time.Hour })
		for range 20 {
			pass(3 * time.Minute)
			w.publish(1, "busy "+time.Now().String())
			w.publish(0, "behind "+time.Now().String())
		}
		w.awaitAges(p.source, map[string]time.Time{lane0: at, lane1: {}})
		close(free)
		w.awaitAges(p.source, map[string]time.Time{lane0: {}, lane1: {}})
	})
	inWorld(t, "trap_T63_a_lane_that_stands_still_is_never_settled", 2, func(t *testing.T, w *world) {
		p, _ := w.lastMove(0, nil, func() {
			if err := w.cluster.DeleteRecords(theTopic, 0, 30); err != nil { // every unread record
				t.Fatal(err)
			}
		})
		w.waitUntil(time.Minute, "the lane has stopped", func() bool { return len(p.source.Info().LaneFaults()) == 1 })
		for range 10 {
			pass(time.Minute)
			w.expectAges(p.source, false, map[string]time.Time{lane1: {}})
		}
	})
	inWorld(t, "trap_T63_a_lane_that_is_held_up_has_the_time_of_what_is_held_up", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		must(t, w.start(count, nil, whenIdle).waitEnd(t))
		pass(time.Minute)
		began := time.Now()
		open := w.begin("hangs", 0, "b")
		ended := time.Now()
		p := w.start(count, nil, nil)
		w.waitUntil(5*time.Minute, "it is known", func() bool { _, all := p.source.Info().Ages(); return all })
		told, _ := reportedAges(p.source)
		if at := told[lane0]; at.Before(began.Truncate(time.Millisecond)) || at.After(ended) {
			t.Errorf("the source reports %v; the transaction was written to from %v to %v", told, began, ended)
		}
		w.finish(open, kgo.TryCommit)
		w.awaitAges(p.source, map[string]time.Time{lane0: {}})
	})
	inWorld(t, "trap_T63_a_log_that_ends_behind_its_last_record_is_settled", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		p := w.startSettled(nil)
		w.awaitAges(p.source, map[string]time.Time{lane0: {}})
		w.cluster.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) { return w.answerLongerLog() })
		pass(20 * time.Second)
		told, all := reportedAges(p.source)
		if at := told[lane0]; !all || at.IsZero() {
			t.Errorf("the source reports %v, all %t, although the brokers said that there is more", told, all)
		}
		w.awaitAges(p.source, map[string]time.Time{lane0: {}})
	})
}

// answerLongerLog returns an answer in which the log of partition 0 ends one offset after its last record.
func (w *world) answerLongerLog() (kmsg.Response, error, bool) {
	w.cluster.KeepControl()
	response := kmsg.NewPtrListOffsetsResponse()
	response.Version = 7
	topic, partition := kmsg.NewListOffsetsResponseTopic(), kmsg.NewListOffsetsResponseTopicPartition()
	topic.Topic, partition.Offset = theTopic, w.cluster.PartitionInfo(theTopic, 0).HighWatermark+1
	topic.Partitions = append(topic.Partitions, partition)
	response.Topics = append(response.Topics, topic)
	return response, nil, true
}

func TestLanesThatAreNotThisProcesss(t *testing.T) {
	inWorld(t, "H2_a_lane_that_was_given_to_another_process_is_not_named_any_more", 2, func(t *testing.T, w *world) {
		w.publish(0, "a")
		w.publish(1, "b")
		one := w.start(count, nil, nil)
		w.awaitAges(one.source, map[string]time.Time{lane0: {}, lane1: {}})
		other := w.start(count, nil, nil)
		w.waitUntil(2*time.Minute, "each has a lane", func() bool {
			a, all := reportedAges(one.source)
			b, too := reportedAges(other.source)
			return all && too && len(a) == 1 && len(b) == 1
		})
		a, _ := reportedAges(one.source)
		b, _ := reportedAges(other.source)
		maps.Copy(a, b)
		if len(a) != 2 {
			t.Errorf("both name %v", b)
		}
	})
	inWorld(t, "trap_T63_who_is_cut_off_knows_of_no_progress", 1, func(t *testing.T, w *world) {
		at := longAgo(1)
		w.publishAt(0, "a", at)
		p := w.start(count, nil, nil)
		w.awaitAges(p.source, map[string]time.Time{lane0: {}})
		p.wire.freeze()
		for range 30 {
			pass(time.Minute)
			w.publish(0, "unread "+time.Now().String())
			told, all := reportedAges(p.source)
			if settled, named := told[lane0]; all || named && settled.IsZero() {
				t.Fatalf("the source reports %v, all %t", told, all)
			}
		}
		p.wire.thaw()
		w.awaitAges(p.source, map[string]time.Time{lane0: {}})
	})
	t.Run("trap_T63_that_a_log_was_read_to_its_end_does_not_count_for_long_or_where_it_stands_still", func(t *testing.T) {
		s, l := withLane(t, nil)
		now := time.Now()
		l.delivered, l.end, l.endAsked = 5, 5, now
		if told, all := s.progress.laneAges(now.Add(endKnown)); len(told) != 1 || !told[0].Oldest.IsZero() || !all {
			t.Errorf("the source reports %v, all %t", told, all)
		}
		if told, all := s.progress.laneAges(now.Add(endKnown + 1)); len(told) > 0 || all {
			t.Errorf("later the source reports %v, all %t", told, all)
		}
		l.earliestTime = now.Add(-time.Hour)
		if told, all := s.progress.laneAges(now.Add(endKnown + 1)); len(told) != 1 || !told[0].Oldest.Equal(l.earliestTime) || !all {
			t.Errorf("for a lane that was read the source reports %v, all %t", told, all)
		}
		l.broken = errNoTime
		if told, _ := s.progress.laneAges(now); len(told) != 1 || !told[0].Oldest.Equal(l.earliestTime) {
			t.Errorf("for a stopped lane the source reports %v", told)
		}
	})
	t.Run("trap_T63_who_has_no_lanes_and_hears_of_no_broker_knows_of_no_progress", func(t *testing.T) {
		s := newUnjoinedSource(t, nil)
		must(t, s.member.join(nil))
		defer s.member.currentClient().Close()
		s.member.setAssigned(true)
		if told, all := s.Info().Ages(); len(told) > 0 || all {
			t.Errorf("the source reports %v, all %t", told, all)
		}
		s.brokers.lastAnswer.OnBrokerE2E(kgo.BrokerMetadata{}, 0, kgo.BrokerE2E{})
		if told, all := s.Info().Ages(); len(told) > 0 || !all {
			t.Errorf("after one answer the source reports %v, all %t", told, all)
		}
	})
	t.Run("H2_a_record_without_a_time_makes_its_lane_not_known", func(t *testing.T) {
		s, l := withLane(t, nil)
		l.add([]*kgo.Record{{Timestamp: time.Now(), Offset: 1}, {Timestamp: time.UnixMilli(-1), Offset: 2}}, 1000)
		if told, all := s.progress.laneAges(time.Now()); len(told) > 0 || all {
			t.Errorf("the source reports %v, all %t", told, all)
		}
		if at := message.TimeOf(&kgo.Record{Timestamp: time.UnixMilli(-1)}); !at.IsZero() {
			t.Errorf("its time is %v", at)
		}
	})
}
