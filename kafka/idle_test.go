package kafka

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// whenIdle makes a process end when its source is empty.
func whenIdle(c *settings) { c.IdleExit = time.Second }

// waitEnd waits until a process ends by itself, and returns the result of Run.
func (p *process) waitEnd(t testing.TB) error {
	t.Helper()
	select {
	case err := <-p.ended:
		p.ended <- err
		return err
	case <-time.After(10 * time.Minute):
		t.Fatalf("the run does not end: %+v", p.consumer.Counts())
		return nil
	}
}

// markByNewer writes a message's marker in a format that only a newer release of Semel writes.
func (w *world) markByNewer(id string) {
	w.t.Helper()
	scope, err := w.store.Scope(w.t.Context(), "billing", "shop", 0)
	must(w.t, err)
	b, _, err := w.store.Begin(w.t.Context(), store.TxOptions{}, []store.Mark{{Scope: scope, ID: []byte(id), As: 9}})
	must(w.t, err)
	if r := b.Commit(w.t.Context(), store.Ending{}); r.Outcome != store.Committed {
		w.t.Fatal(r)
	}
}

func TestARunEndsIdleWhenEverythingIsDelivered(t *testing.T) {
	inWorld(t, "trap_T95_a_slow_first_fetch_is_not_an_empty_topic", 1, func(t *testing.T, w *world) {
		w.publish(0, numberedIDs("a", 1, 50)...)
		slow := 0
		w.control(kmsg.Fetch, func(kmsg.Request) kmsg.Response {
			if slow++; slow == 1 {
				w.cluster.SleepControl(func() { pass(5 * time.Second) })
			}
			return nil
		})
		p := w.start(count, nil, whenIdle)
		if err := p.waitEnd(t); err != nil || slow == 0 {
			t.Errorf("%v, %d fetches", err, slow)
		}
		pass(10 * time.Second)
		w.expectOnce(numberedIDs("a", 1, 50)...)
	})
	inWorld(t, "trap_T95_what_an_open_transaction_holds_up_is_named", 2, func(t *testing.T, w *world) {
		w.publish(0, "before")
		open := w.begin("hangs", 0, "inside", "inside too")
		w.publish(0, "behind")
		w.publish(1, "beside")
		p := w.start(count, nil, whenIdle)
		must(t, p.waitEnd(t))
		w.expectOnce("before", "beside")
		left := p.consumer.Unfinished()
		if len(left) != 1 || left[0].Lane != "orders/0" || left[0].Messages != 3 || !strings.Contains(left[0].Reason, "held up by an open transaction") {
			t.Errorf("left is %+v", left)
		}
		w.finish(open, kgo.TryCommit)
		again := w.start(count, nil, whenIdle)
		if err := again.waitEnd(t); err != nil || len(again.consumer.Unfinished()) > 0 {
			t.Errorf("%v, left %+v", err, again.consumer.Unfinished())
		}
		w.expectOnce("before", "inside", "inside too", "behind", "beside")
	})
	inWorld(t, "trap_T95_what_waits_for_a_newer_release_is_named_and_keeps_no_run_from_ending", 2, func(t *testing.T, w *world) {
		w.publish(0, numberedIDs("a", 1, 2000)...)
		w.publish(1, "beside")
		w.markByNewer("a0002")
		p := w.start(count, nil, func(c *settings) { whenIdle(c); c.Batch.MaxSize = 1 })
		if err := p.waitEnd(t); !errors.Is(err, semel.ErrUnfinished) || !strings.Contains(err.Error(), `message "a0002"`) {
			t.Errorf("the run returned: %v", err)
		}
		w.expectOnce("a0001", "beside")
		w.expectNoEffect("a0002", "a0003", "a2000")
		left := p.consumer.Unfinished()
		if len(left) != 1 || left[0].Lane != "orders/0" || left[0].Messages != 1999 || !left[0].Fault {
			t.Errorf("left is %+v", left)
		}
		w.wantCommitted(0, 1)
	})
	inWorld(t, "trap_T95_control_records_and_what_was_aborted_are_no_reason_to_wait", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		w.finish(w.begin("b", 0, "aborted"), kgo.TryAbort)
		p := w.start(count, nil, whenIdle)
		if err := p.waitEnd(t); err != nil || len(p.consumer.Unfinished()) > 0 {
			t.Errorf("%v, left %+v", err, p.consumer.Unfinished())
		}
		w.expectOnce("a")
	})
	inWorld(t, "trap_T95_a_lane_that_stands_still_fails_a_run_that_is_otherwise_idle", 2, func(t *testing.T, w *world) {
		w.publish(0, numberedIDs("a", 1, 10)...)
		first := w.start(count, nil, whenIdle)
		must(t, first.waitEnd(t))
		w.publish(0, numberedIDs("a", 11, 30)...)
		w.publish(1, "beside")
		must(t, w.cluster.DeleteRecords(theTopic, 0, 20))
		second := w.start(count, nil, whenIdle)
		err := second.waitEnd(t)
		if !errors.Is(err, semel.ErrUnfinished) || !strings.Contains(err.Error(), "orders/0") {
			t.Errorf("the run returned: %v", err)
		}
		w.expectOnce("beside")
	})
	inWorld(t, "trap_T95_a_log_whose_tail_was_compacted_away_is_empty", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		p := w.startSettled(nil)
		for l := range p.source.lanes.each {
			l.next, l.delivered = 0, 0 // as if only a gap were left before the end
		}
		w.cluster.ControlKey(int16(kmsg.Fetch), emptyFetches(w))
		idle, left, err := p.source.Info().Idle(t.Context())
		if err != nil || !idle || len(left) > 0 {
			t.Errorf("idle %t, left %+v, %v", idle, left, err)
		}
	})
}

// emptyFetches answers the fetches that check for remaining records. The answer contains no records.
func emptyFetches(w *world) func(kmsg.Request) (kmsg.Response, error, bool) {
	return func(request kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		asked := request.(*kmsg.FetchRequest)
		if asked.MaxBytes != 1 || len(asked.Topics) == 0 {
			return nil, nil, false
		}
		response := asked.ResponseKind().(*kmsg.FetchResponse)
		topic, partition := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
		topic.Topic, topic.TopicID = theTopic, asked.Topics[0].TopicID
		topic.Partitions = append(topic.Partitions, partition)
		response.Topics = append(response.Topics, topic)
		return response, nil, true
	}
}

// slowJoins delays the answers to JoinGroup requests.
func (w *world) slowJoins(d time.Duration) {
	w.control(kmsg.JoinGroup, func(kmsg.Request) kmsg.Response {
		w.cluster.SleepControl(func() { pass(d) })
		return nil
	})
}

// expectNotIdle fails if a source reports that it is idle.
func expectNotIdle(t testing.TB, s *Source, when string) {
	t.Helper()
	if idle, left, err := s.Info().Idle(t.Context()); idle || err != nil {
		t.Errorf("%s: idle %t, left %+v, %v", when, idle, left, err)
	}
}

// hasNone waits until the source of a process has no lane.
func (w *world) hasNone(p *process) {
	w.t.Helper()
	w.waitUntil(time.Minute, "its lanes are lost", func() bool { return len(p.source.lanes.all()) == 0 })
}

func TestAMemberWhoseLanesAreToComeIsNotIdle(t *testing.T) {
	inWorld(t, "trap_T95_before_it_is_told_what_it_reads_for_the_first_time", 1, func(t *testing.T, w *world) {
		w.publish(0, numberedIDs("a", 1, 50)...)
		w.slowJoins(6 * time.Second)
		p := w.start(count, nil, nil)
		w.waitUntil(time.Minute, "it joins", func() bool { return p.source.member.currentClient() != nil })
		expectNotIdle(t, p.source, "joining")
		w.waitCommitted(time.Minute)
		w.expectOnce(numberedIDs("a", 1, 50)...)
	})
	inWorld(t, "trap_T95_after_the_group_has_forgotten_it", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		p := w.startSettled(nil)
		w.slowJoins(6 * time.Second)
		w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Err: kerr.UnknownMemberID, Count: 1})
		w.hasNone(p)
		expectNotIdle(t, p.source, "forgotten")
	})
	inWorld(t, "trap_T95_while_the_answer_to_a_commit_has_ended_its_lane", 1, func(t *testing.T, w *world) {
		p := w.start(count, nil, nil)
		w.waitUntil(time.Minute, "it has a lane", p.source.lanes.hasAny)
		refuse(w.cluster, kerr.UnknownMemberID, 1)
		w.publish(0, "a")
		w.waitUntil(time.Minute, "its lane is lost", func() bool { return p.firstLane().ended })
		expectNotIdle(t, p.source, "lost")
	})
	inWorld(t, "trap_T95_when_it_is_replaced_while_the_brokers_answer", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		p := w.startSettled(nil)
		w.slowJoins(6 * time.Second)
		var asked atomic.Bool
		w.cluster.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
			w.cluster.SleepControl(func() {
				asked.Store(true)
				p.source.demandReplacement()
				w.hasNone(p)
			})
			return nil, nil, false
		})
		expectNotIdle(t, p.source, "replaced")
		if !asked.Load() {
			t.Error("the brokers were not asked")
		}
	})
	inWorld(t, "trap_T95_when_it_is_told_of_its_lanes_end_before_it_is_replaced", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		p := w.startSettled(nil)
		p.source.lanes.observer = &lastObserver{p.source.lanes.observer, func() { expectNotIdle(t, p.source, "at the end of its lane") }}
		p.source.demandReplacement()
		pass(10 * time.Second)
	})
}

func TestAPlaceThatIsNotThereIsNotAskedFor(t *testing.T) {
	for name, answer := range map[string]kmsg.MetadataResponseTopic{
		"trap_T95_no_answer_for_its_topic":     answeredAs("another", 7, nil),
		"trap_T95_its_topic_is_unknown":        answeredAs(theTopic, 0, kerr.UnknownTopicOrPartition),
		"trap_T95_its_partition_is_unknown":    answeredAs(theTopic, 7, nil),
		"trap_T95_its_partition_has_no_leader": addLeaderless(answeredAs(theTopic, 7, nil)),
	} {
		inWorld(t, name, 1, func(t *testing.T, w *world) {
			w.publish(0, "a")
			p := w.startSettled(nil)
			for l := range p.source.lanes.each {
				l.next, l.delivered = 0, 0 // as if the lane had not read its records
			}
			var asked atomic.Int32
			w.control(kmsg.Fetch, func(request kmsg.Request) kmsg.Response {
				if request.(*kmsg.FetchRequest).MaxBytes == 1 {
					asked.Add(1)
				}
				return nil
			})
			w.control(kmsg.ListOffsets, func(request kmsg.Request) kmsg.Response {
				if request.(*kmsg.ListOffsetsRequest).IsolationLevel == 1 { // the last request before the check of idleness
					w.cluster.SleepControl(func() { pass(2 * metadataAge) }) // after this pause, the cached metadata is too old
					w.alwaysAnswer(answer)
				}
				return nil
			})
			idle, left, err := p.source.Info().Idle(t.Context())
			if idle || err != nil || len(left) != 1 || left[0].Lane != "orders/0" || !strings.Contains(left[0].Reason, "cannot determine") {
				t.Errorf("idle %t, left %+v, %v", idle, left, err)
			}
			if n := asked.Load(); n != 0 {
				t.Errorf("a broker got %d requests", n)
			}
		})
	}
}

// alwaysAnswer answers every metadata request with the given topic.
func (w *world) alwaysAnswer(topic kmsg.MetadataResponseTopic) {
	w.control(kmsg.Metadata, func(request kmsg.Request) kmsg.Response {
		response := request.ResponseKind().(*kmsg.MetadataResponse)
		response.Topics = append(response.Topics, topic)
		return response
	})
}

// addLeaderless adds a partition without a leader to the metadata of a topic.
func addLeaderless(topic kmsg.MetadataResponseTopic) kmsg.MetadataResponseTopic {
	partition := kmsg.NewMetadataResponseTopicPartition()
	partition.Leader, partition.ErrorCode = -1, kerr.LeaderNotAvailable.Code
	topic.Partitions = append(topic.Partitions, partition)
	return topic
}

// lastObserver is an observer of lanes. When a lane ends, lastObserver first calls its field before, and then the
// wrapped observer.
type lastObserver struct {
	source.LaneObserver
	before func()
}

func (o *lastObserver) Lost(l source.Lane) {
	o.before()
	o.LaneObserver.Lost(l)
}
