package kafka

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// killAt starts a process, kills the process when a batch passes a point, and waits for the end of the
// process.
func (w *world) killAt(point faults.Point, handle handler) *process {
	w.t.Helper()
	born, died := make(chan *process, 1), make(chan bool)
	var once sync.Once
	p := w.start(handle, nil, func(c *settings) {
		c.Batch.MaxSize = 5
		c.plan.At = func(at faults.Point, _ int) {
			if at == point {
				once.Do(func() { (<-born).kill(); close(died) })
			}
		}
	})
	born <- p
	<-died
	_ = p.leave()
	return p
}

func TestProcessesThatDie(t *testing.T) {
	before := []faults.Point{faults.AfterFetch, faults.AfterMark, faults.AfterEffect, faults.BeforeCommit}
	after := []faults.Point{faults.AfterCommit, faults.BeforeSettle}
	bubble(t, "trap_3_of_a_process_that_dies_before_the_commit_nothing_is_left_and_all_of_it_comes_again", func(t *testing.T) {
		for _, point := range before {
			w := newWorld(t, 1)
			ids := numberedIDs("m", 1, 20)
			w.publish(0, ids...)
			w.killAt(point, count)
			for _, id := range ids {
				if w.effect(id) != 0 {
					t.Errorf("%s: %s has an effect", point, id)
				}
			}
			next := w.start(count, nil, nil)
			w.waitCommitted(5 * time.Minute)
			w.expectOnce(ids...)
			if c := next.consumer.Counts(); c.Applied != 20 || c.Duplicates != 0 {
				t.Errorf("%s: %+v", point, c)
			}
			w.close()
		}
	})
	bubble(t, "trap_2_what_a_process_committed_before_it_died_is_a_duplicate_for_the_next", func(t *testing.T) {
		for _, point := range after {
			w := newWorld(t, 1)
			ids := numberedIDs("m", 1, 20)
			w.publish(0, ids...)
			w.killAt(point, count)
			if w.committedOffset(0) > 0 {
				t.Errorf("%s: the group's offset is %d before anything was settled", point, w.committedOffset(0))
			}
			next := w.start(count, nil, nil)
			w.waitCommitted(5 * time.Minute)
			w.expectOnce(ids...)
			if c := next.consumer.Counts(); c.Duplicates == 0 || c.Applied+c.Duplicates != 20 {
				t.Errorf("%s: %+v", point, c)
			}
			w.close()
		}
	})
	inWorld(t, "trap_1_an_ack_that_never_reaches_the_broker_brings_the_message_again_and_no_handler_runs", 1, func(t *testing.T, w *world) {
		w.publish(0, "a", "b")
		var broken atomic.Bool
		broken.Store(true)
		lost := 0
		w.cluster.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
			w.cluster.KeepControl()
			if !broken.Load() {
				return nil, nil, false
			}
			lost++
			return nil, errors.New("the connection is gone"), true
		})
		first := w.start(count, nil, func(c *settings) { c.Drain = time.Second })
		pass(5 * time.Second)
		first.kill()
		broken.Store(false)
		ran := 0
		next := w.start(func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error { ran++; return count(ctx, tx, m) }, nil, nil)
		w.publish(0, "c")
		w.waitCommitted(5 * time.Minute)
		w.expectOnce("a", "b", "c")
		if c := next.consumer.Counts(); c.Duplicates != 2 || ran != 1 || lost == 0 {
			t.Errorf("%+v, the handler ran %d times, %d acks were lost", c, ran, lost)
		}
	})
}

func TestCopies(t *testing.T) {
	inWorld(t, "trap_5_what_a_producer_sends_again_takes_effect_once", 2, func(t *testing.T, w *world) {
		p := w.start(count, nil, nil)
		w.publish(0, "a", "a", "b")
		w.publish(1, "b", "a")
		w.waitCommitted(time.Minute)
		w.expectOnce("a", "b")
		if c := p.consumer.Counts(); c.Applied != 2 || c.Duplicates != 3 {
			t.Errorf("%+v", c)
		}
	})
	inWorld(t, "trap_6_copies_in_one_fetch_have_one_effect_and_all_are_settled", 1, func(t *testing.T, w *world) {
		w.produce(order(0, "a"), order(0, "a"), order(0, "b"), order(0, "a"), order(0, "b"))
		p := w.startSettled(nil)
		w.expectOnce("a", "b")
		if c := p.consumer.Counts(); c.Duplicates != 3 {
			t.Errorf("%+v", c)
		}
	})
	for name, fails := range map[string]bool{
		"trap_7_of_copies_in_two_processes_the_second_is_settled_after_the_first_has_committed": false,
		"trap_8_when_the_first_of_two_copies_in_two_processes_fails_the_second_runs":            true,
	} {
		bubble(t, name, func(t *testing.T) { twoProcesses(t, fails) })
	}
	inWorld(t, "trap_10_a_copy_of_a_parked_message_is_counted_on_its_row_and_settled", 1, func(t *testing.T, w *world) {
		p := w.start(func(context.Context, *memstore.Tx, *semel.Message) error { return semel.Park("look at it") }, nil, nil)
		w.publish(0, "a")
		w.waitCommitted(time.Minute)
		w.publish(0, "a", "a")
		w.waitCommitted(time.Minute)
		rows, err := w.store.Rows(context.Background(), store.RowFilter{Bodies: true})
		if err != nil || len(rows) != 1 || rows[0].Repeated != 2 || rows[0].Reason != "look at it" {
			t.Errorf("%+v, %v", rows, err)
		}
		if c := p.consumer.Counts(); c.Parked != 1 || c.Duplicates != 2 {
			t.Errorf("%+v", c)
		}
	})
	inWorld(t, "trap_22_two_groups_that_read_one_topic_both_apply_each_message", 2, func(t *testing.T, w *world) {
		ids := numberedIDs("m", 1, 40)
		w.publish(0, ids...)
		one := w.start(count, nil, nil)
		two := w.start(count, func(c *Config) { c.Group = "shipping" }, func(c *settings) { c.Name = "shipping" })
		w.waitUntil(time.Minute, "both have applied all", func() bool { return w.effect("m0040") == 2 })
		for _, p := range []*process{one, two} {
			if c := p.consumer.Counts(); c.Applied != 40 || c.Duplicates != 0 {
				t.Errorf("%+v", c)
			}
		}
	})
}

// twoProcesses delivers one message to two processes at the same time.
func twoProcesses(t *testing.T, firstFails bool) {
	w := newWorld(t, 2)
	began, goOn := make(chan string, 10), make(chan bool)
	handle := func(name string, fails bool) handler {
		return func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			began <- name
			if name == "first" {
				<-goOn
			}
			if fails {
				return semel.RetryAfter(errSpoilt, 10*time.Second)
			}
			return count(ctx, tx, m)
		}
	}
	w.start(handle("first", firstFails), nil, nil)
	w.waitUntil(time.Minute, "it has joined", func() bool { return w.members() == 1 })
	w.start(handle("second", false), nil, nil)
	w.waitUntil(time.Minute, "each has a partition", func() bool {
		info := w.cluster.GroupInfo(theGroup)
		return len(info.Members) == 2 && info.Members[0].NumAssigned() == 1 && info.Members[1].NumAssigned() == 1
	})
	mine := int32(slices.IndexFunc([]int32{0, 1}, func(p int32) bool {
		info := w.cluster.GroupInfo(theGroup)
		i := slices.IndexFunc(info.Members, func(m kfake.GroupMember) bool { return m.ClientID == "process 1" })
		return info.Members[i].Assignment[theTopic][0] == p
	}))
	w.publish(mine, "a")
	if who := <-began; who != "first" {
		t.Fatalf("%s has the first copy", who)
	}
	w.publish(1-mine, "a")
	pass(2 * time.Second)
	if at := w.committedOffset(1 - mine); at > 0 || len(began) != 0 {
		t.Errorf("the second copy is settled up to %d, or it runs, while the first one is open", at)
	}
	close(goOn)
	w.waitCommitted(time.Minute)
	w.expectOnce("a")
	if ran := len(began); (ran > 0) != firstFails {
		t.Errorf("the handler ran %d times more", ran)
	}
}

func (w *world) members() int {
	info := w.cluster.GroupInfo(theGroup)
	if info == nil || info.State != "Stable" {
		return 0
	}
	return len(info.Members)
}

func TestMessagesThatFail(t *testing.T) {
	inWorld(t, "trap_12_a_message_that_is_tried_again_holds_its_partition_in_order_and_no_other", 2, func(t *testing.T, w *world) {
		var ran journal
		tries := 0
		w.publish(0, numberedIDs("a", 1, 10)...)
		w.publish(1, numberedIDs("b", 1, 10)...)
		w.start(func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "a0004" {
				if tries++; tries < 4 {
					return semel.RetryAfter(errSpoilt, 5*time.Second)
				}
			}
			ran.add(m.Identity.ID)
			return count(ctx, tx, m)
		}, nil, nil)
		w.waitUntil(4*time.Second, "the other partition continues", func() bool { return w.committedOffset(1) == 10 })
		w.expectNoEffect("a0005")
		w.waitCommitted(time.Minute)
		var lane []string
		for _, id := range ran.all() {
			if id[0] == 'a' && !slices.Contains(lane, id) {
				lane = append(lane, id)
			}
		}
		if !slices.IsSorted(lane) || len(lane) != 10 {
			t.Errorf("they ran as %v", lane)
		}
	})
	inWorld(t, "trap_15_a_message_that_always_fails_is_parked_with_its_body_and_the_offset_goes_on", 1, func(t *testing.T, w *world) {
		w.publish(0, "a", "poison", "b")
		w.start(func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "poison" {
				return errSpoilt
			}
			return count(ctx, tx, m)
		}, nil, func(c *settings) { c.Retry.MaxAttempts = 3 })
		w.waitCommitted(5 * time.Minute)
		w.expectOnce("a", "b")
		rows, err := w.store.Rows(context.Background(), store.RowFilter{Bodies: true})
		if err != nil || len(rows) != 1 || rows[0].Attempts != 3 || string(rows[0].Message.Body) != "order poison" || rows[0].Message.Origin.Offset != 1 {
			t.Errorf("%+v, %v", rows, err)
		}
	})
	inWorld(t, "trap_21_a_parked_message_that_was_retried_has_no_second_effect_when_it_comes_again", 1, func(t *testing.T, w *world) {
		fails := true
		p := w.start(func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if fails {
				return semel.Permanent(errSpoilt)
			}
			return count(ctx, tx, m)
		}, nil, nil)
		w.publish(0, "a")
		w.waitCommitted(time.Minute)
		fails = false
		rows, err := w.store.Rows(context.Background(), store.RowFilter{Bodies: true})
		if err != nil || len(rows) != 1 {
			t.Fatalf("%+v, %v", rows, err)
		}
		for try := range 2 {
			err := errors.Join(w.store.Requeue(context.Background(), store.Act{Who: "operator"}, rows[0].Seen())...)
			if (err == nil) != (try == 0) {
				t.Errorf("try %d: %v", try, err)
			}
			w.waitUntil(time.Minute, "the row was processed", func() bool { return p.consumer.Counts().Inbox.Applied == 1 })
		}
		w.publish(0, "a")
		w.waitCommitted(time.Minute)
		w.expectOnce("a")
	})
	inWorld(t, "trap_24_when_the_group_takes_one_partition_and_refuses_another_only_that_is_committed_again", 2, func(t *testing.T, w *world) {
		handle := w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: theTopic, Partitions: []int32{1}, Err: kerr.CoordinatorLoadInProgress, Count: -1})
		p := w.start(count, nil, nil)
		w.publish(0, numberedIDs("a", 1, 10)...)
		w.publish(1, numberedIDs("b", 1, 10)...)
		w.waitUntil(2*time.Minute, "one partition is committed and the other refused", func() bool { return w.committedOffset(0) == 10 && handle.Hits() > 0 })
		if at := w.committedOffset(1); at > 0 {
			t.Errorf("the other partition is committed at %d, %d faults", at, handle.Hits())
		}
		handle.Remove()
		w.waitCommitted(5 * time.Minute)
		w.expectOnce(append(numberedIDs("a", 1, 10), numberedIDs("b", 1, 10)...)...)
		if c := p.consumer.Counts(); c.Duplicates != 0 || c.Deliveries != 20 {
			t.Errorf("%+v", c)
		}
	})
}
