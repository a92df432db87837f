package kafka

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// whenIdle lets a run end when its source is empty.
func whenIdle(c *settings) { c.IdleExit = time.Second }

// ends waits until a process has ended by itself, and returns what Run did.
func (p *process) ends(t testing.TB) error {
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

// ofNewer writes the marker of an order as only a newer release does.
func (w *world) ofNewer(id string) {
	w.t.Helper()
	scope, err := w.store.Scope(w.t.Context(), "billing", "shop", 0)
	if err != nil {
		w.t.Fatal(err)
	}
	b, _, err := w.store.Begin(w.t.Context(), store.TxOptions{}, []store.Mark{{Scope: scope, ID: []byte(id), As: 9}})
	if err != nil {
		w.t.Fatal(err)
	}
	if r := b.Commit(w.t.Context(), store.Ending{}); r.Outcome != store.Committed {
		w.t.Fatal(r)
	}
}

func TestARunEndsIdleWhenEverythingIsDelivered(t *testing.T) {
	bubble(t, "trap_T95_a_slow_first_fetch_is_not_an_empty_topic", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, numbered("a", 1, 50)...)
		slow := 0
		w.cluster.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
			w.cluster.KeepControl()
			if slow++; slow == 1 {
				w.cluster.SleepControl(func() { pass(5 * time.Second) })
			}
			return nil, nil, false
		})
		p := w.start(count, nil, whenIdle)
		if err := p.ends(t); err != nil || slow == 0 {
			t.Errorf("%v, %d fetches", err, slow)
		}
		pass(10 * time.Second)
		w.once(numbered("a", 1, 50)...)
	})
	bubble(t, "trap_T95_what_an_open_transaction_holds_up_is_named", func(t *testing.T) {
		w := newWorld(t, 2)
		w.publish(0, "before")
		open := w.begin("hangs", 0, "inside", "inside too")
		w.publish(0, "behind")
		w.publish(1, "beside")
		p := w.start(count, nil, whenIdle)
		if err := p.ends(t); err != nil {
			t.Error(err)
		}
		w.once("before", "beside")
		left := p.consumer.Unfinished()
		if len(left) != 1 || left[0].Lane != "orders/0" || left[0].Messages != 3 || !strings.Contains(left[0].Reason, "held up by an open transaction") {
			t.Errorf("left is %+v", left)
		}
		w.finish(open, kgo.TryCommit)
		again := w.start(count, nil, whenIdle)
		if err := again.ends(t); err != nil || len(again.consumer.Unfinished()) > 0 {
			t.Errorf("%v, left %+v", err, again.consumer.Unfinished())
		}
		w.once("before", "inside", "inside too", "behind", "beside")
	})
	bubble(t, "trap_T95_what_waits_for_a_newer_release_is_named_and_keeps_no_run_from_ending", func(t *testing.T) {
		w := newWorld(t, 2)
		w.publish(0, numbered("a", 1, 2000)...)
		w.publish(1, "beside")
		w.ofNewer("a0002")
		p := w.start(count, nil, func(c *settings) { whenIdle(c); c.Batch.MaxSize = 1 })
		if err := p.ends(t); !errors.Is(err, semel.ErrUnfinished) || !strings.Contains(err.Error(), `message "a0002"`) {
			t.Errorf("the run says: %v", err)
		}
		w.once("a0001", "beside")
		w.without("a0002", "a0003", "a2000")
		left := p.consumer.Unfinished()
		if len(left) != 1 || left[0].Lane != "orders/0" || left[0].Messages != 1999 || !left[0].Fault {
			t.Errorf("left is %+v", left)
		}
		if at := w.committed(0); at != 1 {
			t.Errorf("the group's offset is %d", at)
		}
	})
	bubble(t, "trap_T95_control_records_and_what_was_aborted_are_no_reason_to_wait", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		w.finish(w.begin("b", 0, "aborted"), kgo.TryAbort)
		p := w.start(count, nil, whenIdle)
		if err := p.ends(t); err != nil || len(p.consumer.Unfinished()) > 0 {
			t.Errorf("%v, left %+v", err, p.consumer.Unfinished())
		}
		w.once("a")
	})
	bubble(t, "trap_T95_a_lane_that_stands_still_fails_a_run_that_is_otherwise_idle", func(t *testing.T) {
		w := newWorld(t, 2)
		w.publish(0, numbered("a", 1, 10)...)
		first := w.start(count, nil, whenIdle)
		if err := first.ends(t); err != nil {
			t.Fatal(err)
		}
		w.publish(0, numbered("a", 11, 30)...)
		w.publish(1, "beside")
		if err := w.cluster.DeleteRecords(theTopic, 0, 20); err != nil {
			t.Fatal(err)
		}
		second := w.start(count, nil, whenIdle)
		err := second.ends(t)
		if !errors.Is(err, semel.ErrUnfinished) || !strings.Contains(err.Error(), "orders/0") {
			t.Errorf("the run says: %v", err)
		}
		w.once("beside")
	})
	bubble(t, "trap_T95_a_log_whose_tail_was_compacted_away_is_empty", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		p := w.start(count, nil, nil)
		w.settles(time.Minute)
		p.source.lanes.mu.Lock()
		for _, l := range p.source.lanes.order {
			l.next, l.delivered = 0, 0 // as if it had got to a gap before the end
		}
		p.source.lanes.mu.Unlock()
		w.cluster.ControlKey(int16(kmsg.Fetch), emptyFetches(w))
		idle, left, err := p.source.Info().Idle(t.Context())
		if err != nil || !idle || len(left) > 0 {
			t.Errorf("idle %t, left %+v, %v", idle, left, err)
		}
	})
}

// emptyFetches lets what asks for the least there is find nothing.
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
