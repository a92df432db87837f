package kafka

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// slowJoins lets each answer to who joins the group take a while.
func (w *world) slowJoins(d time.Duration) {
	w.cluster.ControlKey(int16(kmsg.JoinGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		w.cluster.SleepControl(func() { pass(d) })
		return nil, nil, false
	})
}

// busy fails if a source says that it is idle.
func busy(t testing.TB, s *Source, when string) {
	t.Helper()
	if idle, left, err := s.Info().Idle(t.Context()); idle || err != nil {
		t.Errorf("%s: idle %t, left %+v, %v", when, idle, left, err)
	}
}

// hasNone waits until a source has no lane.
func (w *world) hasNone(p *process) {
	w.t.Helper()
	w.until(time.Minute, "its lanes are lost", func() bool {
		p.source.lanes.mu.Lock()
		defer p.source.lanes.mu.Unlock()
		return len(p.source.lanes.order) == 0
	})
}

func TestAMemberWhoseLanesAreToComeIsNotIdle(t *testing.T) {
	bubble(t, "trap_T95_before_it_is_told_what_it_reads_for_the_first_time", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, numbered("a", 1, 50)...)
		w.slowJoins(6 * time.Second)
		p := w.start(count, nil, nil)
		w.until(time.Minute, "it joins", func() bool { return p.source.member.current() != nil })
		busy(t, p.source, "joining")
		w.settles(time.Minute)
		w.once(numbered("a", 1, 50)...)
	})
	bubble(t, "trap_T95_after_the_group_has_forgotten_it", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		p := w.start(count, nil, nil)
		w.settles(time.Minute)
		w.slowJoins(6 * time.Second)
		w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Err: kerr.UnknownMemberID, Count: 1})
		w.hasNone(p)
		busy(t, p.source, "forgotten")
	})
	bubble(t, "trap_T95_while_the_answer_to_a_commit_has_ended_its_lane", func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.start(count, nil, nil)
		w.until(time.Minute, "it has a lane", p.source.lanes.any)
		refuse(w.cluster, kerr.UnknownMemberID, 1)
		w.publish(0, "a")
		w.until(time.Minute, "its lane is lost", func() bool {
			p.source.lanes.mu.Lock()
			defer p.source.lanes.mu.Unlock()
			return len(p.source.lanes.order) == 1 && p.source.lanes.order[0].gone
		})
		busy(t, p.source, "lost")
	})
	bubble(t, "trap_T95_when_it_is_replaced_while_the_brokers_answer", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		p := w.start(count, nil, nil)
		w.settles(time.Minute)
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
		busy(t, p.source, "replaced")
		if !asked.Load() {
			t.Error("the brokers were not asked")
		}
	})
	bubble(t, "trap_T95_when_it_is_told_of_its_lanes_end_before_it_is_replaced", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		p := w.start(count, nil, nil)
		w.settles(time.Minute)
		p.source.lanes.observer = &lastly{p.source.lanes.observer, func() { busy(t, p.source, "at the end of its lane") }}
		p.source.demandReplacement()
		pass(10 * time.Second)
	})
}

func TestAPlaceThatIsNotThereIsNotAskedFor(t *testing.T) {
	for name, answer := range map[string]kmsg.MetadataResponseTopic{
		"trap_T95_no_answer_for_its_topic":     answeredAs("another", 7, nil),
		"trap_T95_its_topic_is_unknown":        answeredAs(theTopic, 0, kerr.UnknownTopicOrPartition),
		"trap_T95_its_partition_is_unknown":    answeredAs(theTopic, 7, nil),
		"trap_T95_its_partition_has_no_leader": leaderless(answeredAs(theTopic, 7, nil)),
	} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.publish(0, "a")
			p := w.start(count, nil, nil)
			w.settles(time.Minute)
			p.source.lanes.mu.Lock()
			for _, l := range p.source.lanes.order {
				l.next, l.delivered = 0, 0 // as if it had got no further
			}
			p.source.lanes.mu.Unlock()
			var asked atomic.Int32
			w.cluster.ControlKey(int16(kmsg.Fetch), func(request kmsg.Request) (kmsg.Response, error, bool) {
				w.cluster.KeepControl()
				if request.(*kmsg.FetchRequest).MaxBytes == 1 {
					asked.Add(1)
				}
				return nil, nil, false
			})
			w.cluster.ControlKey(int16(kmsg.ListOffsets), func(request kmsg.Request) (kmsg.Response, error, bool) {
				w.cluster.KeepControl()
				if request.(*kmsg.ListOffsetsRequest).IsolationLevel == 1 { // the last question before
					w.cluster.SleepControl(func() { pass(2 * metadataAge) }) // for which what was heard is too old
					w.alwaysAnswer(answer)
				}
				return nil, nil, false
			})
			idle, left, err := p.source.Info().Idle(t.Context())
			if idle || err != nil || len(left) != 1 || left[0].Lane != "orders/0" || !strings.Contains(left[0].Reason, "not known") {
				t.Errorf("idle %t, left %+v, %v", idle, left, err)
			}
			if n := asked.Load(); n != 0 {
				t.Errorf("a broker was asked %d times", n)
			}
		})
	}
}

// alwaysAnswer answers every look at topics.
func (w *world) alwaysAnswer(topic kmsg.MetadataResponseTopic) {
	w.cluster.ControlKey(int16(kmsg.Metadata), func(request kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		response := request.ResponseKind().(*kmsg.MetadataResponse)
		response.Topics = append(response.Topics, topic)
		return response, nil, true
	})
}

// leaderless adds a partition without a leader.
func leaderless(topic kmsg.MetadataResponseTopic) kmsg.MetadataResponseTopic {
	partition := kmsg.NewMetadataResponseTopicPartition()
	partition.Leader, partition.ErrorCode = -1, kerr.LeaderNotAvailable.Code
	topic.Partitions = append(topic.Partitions, partition)
	return topic
}

// lastly is an observer before whom something happens when it is told of a
// lane's end.
type lastly struct {
	source.LaneObserver
	before func()
}

func (o *lastly) Lost(l source.Lane) {
	o.before()
	o.LaneObserver.Lost(l)
}
