package kafka

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/memstore"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// stuckHandler is a handler that ignores its context and blocks until the test releases it. The handler applies its
// message only after the release.
type stuckHandler struct {
	began chan bool
	goOn  chan bool
}

func newStuck() *stuckHandler { return &stuckHandler{make(chan bool, 1000), make(chan bool)} }

func (s *stuckHandler) handle(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
	s.began <- true
	<-s.goOn
	return count(ctx, tx, m)
}

func TestOwnersThatWereFrozen(t *testing.T) {
	inWorld(t, "trap_26_an_owner_that_finishes_after_a_rebalance_doubles_nothing_and_commits_nothing", 1, func(t *testing.T, w *world) {
		ids := numberedIDs("m", 1, 20)
		w.publish(0, ids...)
		s := newStuck()
		old := w.start(s.handle, nil, func(c *settings) { c.Batch.MaxSize = 1 })
		<-s.began
		old.wire.freeze() // freeze for longer than the session timeout
		w.start(count, nil, nil)
		// The open transaction of the previous owner blocks the first message, and so the whole lane.
		pass(20 * time.Second)
		close(s.goOn)
		w.waitCommitted(5 * time.Minute)
		old.wire.thaw()
		pass(time.Minute)
		w.expectOnce(ids...)
		w.waitCommitted(0)
	})
	inWorld(t, "trap_27_a_commit_that_arrives_when_another_owner_has_gone_further_moves_nothing_back", 1, func(t *testing.T, w *world) {
		w.publish(0, numberedIDs("m", 1, 10)...)
		offers := w.countCommits()
		old := w.start(func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "m0005" {
				w.wires[0].freeze() // at this time, a commit of acked messages is in progress
			}
			return count(ctx, tx, m)
		}, nil, func(c *settings) { c.Batch.MaxSize = 5 })
		w.waitUntil(time.Minute, "the previous owner has done its work", func() bool { return w.effect("m0010") == 1 })
		w.publish(0, numberedIDs("m", 11, 30)...)
		w.start(count, nil, nil)
		w.waitCommitted(5 * time.Minute)
		asked := offers.Load()
		old.wire.thaw()
		w.waitUntil(time.Minute, "the late commit has arrived", func() bool { return offers.Load() > asked })
		pass(time.Minute)
		w.wantCommitted(0, 30)
		w.expectOnce(numberedIDs("m", 1, 30)...)
	})
	bubble(t, "trap_29_a_handler_that_runs_on_after_its_session_ended_does_no_harm", func(t *testing.T) {
		for _, reply := range []error{nil, errSpoilt} { // at the end the handler commits or rolls back
			w := newWorld(t, 1)
			ids := numberedIDs("m", 1, 10)
			w.publish(0, ids...)
			s := newStuck()
			old := w.start(func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				err := s.handle(ctx, tx, m)
				if reply != nil {
					return semel.RetryAfter(reply, time.Second)
				}
				return err
			}, nil, nil)
			<-s.began
			old.wire.freeze()
			w.start(count, nil, nil)
			pass(15 * time.Second)
			close(s.goOn)
			w.waitCommitted(5 * time.Minute)
			old.wire.thaw()
			pass(time.Minute)
			w.expectOnce(ids...)
			_ = old.leave()
			w.close()
		}
	})
}

// countCommits counts the requests to commit offsets.
func (w *world) countCommits() *atomic.Int64 {
	var n atomic.Int64
	w.control(kmsg.OffsetCommit, func(kmsg.Request) kmsg.Response {
		n.Add(1)
		return nil
	})
	return &n
}

func TestOwnersThatChangeAtEachPoint(t *testing.T) {
	for name, strike := range map[string]func(*world, *process){
		"trap_T34_a_member_that_is_frozen_at_any_point_for_longer_than_its_session_loses_and_doubles_nothing": func(w *world, p *process) {
			p.wire.freeze()
			pass(15 * time.Second)
		},
		"trap_T34_a_member_that_is_asked_for_its_lanes_at_any_point_loses_and_doubles_nothing": func(w *world, _ *process) {
			pass(15 * time.Second) // during this time, the next owner joins
		},
	} {
		bubble(t, name, func(t *testing.T) {
			for _, point := range faults.Points() {
				if point == faults.CommitReplyLost {
					continue // this member gets no answer that could be lost
				}
				strikeAt(t, point, strike)
			}
		})
	}
}

// strikeAt calls the function strike when a batch of a member passes a point while another member joins.
func strikeAt(t *testing.T, point faults.Point, strike func(*world, *process)) {
	w := newWorld(t, 2)
	ids := append(numberedIDs("a", 1, 60), numberedIDs("b", 1, 60)...)
	w.publish(0, ids[:60]...)
	w.publish(1, ids[60:]...)
	born, struck := make(chan *process, 1), make(chan bool)
	var passed atomic.Int32
	p := w.start(count, func(c *Config) { c.RevokeTimeout = 5 * time.Second }, func(c *settings) {
		c.Batch.MaxSize, c.Workers, c.MaxUnacked.Messages = 5, 1, 30
		c.plan.At = func(at faults.Point, _ int) {
			if at == point && passed.Add(1) == 3 {
				close(struck)
				strike(w, <-born)
			}
		}
	})
	born <- p
	<-struck
	w.start(count, nil, nil)
	pass(time.Minute)
	p.wire.thaw()
	w.waitCommitted(5 * time.Minute)
	w.expectOnce(ids...)
	if t.Failed() {
		t.Logf("at %s", point)
	}
	_ = p.leave()
	w.close()
}

func TestAnswersThatProveNothing(t *testing.T) {
	inWorld(t, "trap_28_an_answer_to_a_commit_that_does_not_name_a_partition_proves_nothing_of_it", 1, func(t *testing.T, w *world) {
		silent := 0
		w.cluster.ControlKey(int16(kmsg.OffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
			if silent++; silent <= 3 {
				w.cluster.KeepControl()
				return r.ResponseKind(), nil, true
			}
			return nil, nil, false
		})
		w.publish(0, "a", "b", "c")
		w.startSettled(nil)
		w.expectOnce("a", "b", "c")
		if silent < 3 {
			t.Errorf("%d commits were answered with nothing", silent)
		}
	})
	bubble(t, "trap_43_an_offset_that_is_not_committed_after_the_effect_loses_nothing_runs_nothing_again_and_ends_nobody", func(t *testing.T) {
		for _, refusal := range []*kerr.Error{
			kerr.UnknownServerError, kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator,
			kerr.RequestTimedOut, kerr.GroupAuthorizationFailed, kerr.RebalanceInProgress, kerr.OffsetMetadataTooLarge, kerr.InvalidCommitOffsetSize,
		} {
			w := newWorld(t, 1)
			w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: refusal, Count: 7})
			offers := w.countCommits()
			w.publish(0, "a", "b", "c")
			p := w.start(count, nil, nil)
			w.waitUntil(time.Minute, "the effects are visible", func() bool { return w.effect("c") == 1 })
			before := time.Now()
			w.waitCommitted(5 * time.Minute)
			if n := offers.Load(); n < 8 && refusal != kerr.RequestTimedOut || n > 8+20*int64(1+time.Since(before)/time.Second) {
				t.Errorf("%v: %d commits were requested within %v", refusal, n, time.Since(before))
			}
			if c := p.consumer.Counts(); c.Applied != 3 || c.Duplicates != 0 || c.Retried != 0 || c.Rerun != 0 {
				t.Errorf("%v: %+v", refusal, c)
			}
			w.expectOnce("a", "b", "c")
			if err := p.leave(); err != nil {
				t.Errorf("%v: the process ended with %v", refusal, err)
			}
			w.close()
		}
	})
	inWorld(t, "trap_43_a_commit_that_is_answered_after_minutes_holds_up_no_effect_and_is_not_overtaken", 1, func(t *testing.T, w *world) {
		var late atomic.Int32
		w.cluster.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
			if late.Add(1) > 3 {
				w.cluster.DropControl()
				return nil, nil, false
			}
			w.cluster.KeepControl()
			w.cluster.SleepControl(func() { pass(8 * time.Second) })
			return nil, nil, false
		})
		p := w.start(count, nil, func(c *settings) { c.Batch.MaxSize = 5 })
		ids := numberedIDs("m", 1, 100)
		w.publish(0, ids...)
		began := time.Now()
		w.waitUntil(time.Minute, "all effects are visible", func() bool { return w.effect("m0100") == 1 })
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the effects waited %v for commits of offsets", took)
		}
		w.waitCommitted(5 * time.Minute)
		w.expectOnce(ids...)
		if c := p.consumer.Counts(); c.Duplicates != 0 {
			t.Errorf("%+v", c)
		}
	})
}

func TestRebalancesEnd(t *testing.T) {
	inWorld(t, "trap_30_a_lane_that_is_asked_for_is_given_up_in_time_and_nobody_is_thrown_out", 2, func(t *testing.T, w *world) {
		s := newStuck()
		w.publish(0, numberedIDs("a", 1, 10)...)
		w.publish(1, numberedIDs("b", 1, 10)...)
		var lost journal
		old := w.start(s.handle, func(c *Config) {
			c.RevokeTimeout = 3 * time.Second
			c.Observe = func(all []LaneState) {
				for _, l := range all {
					if l.Lost {
						lost.add(fmt.Sprint(l.Partition))
					}
				}
			}
		}, nil)
		<-s.began
		<-s.began // handlers of both lanes are running
		w.start(count, nil, nil)
		began := time.Now()
		w.waitUntil(time.Minute, "each of two members has a partition", func() bool {
			info := w.cluster.GroupInfo(theGroup)
			return info.State == "Stable" && len(info.Members) == 2 && info.Members[0].NumAssigned() == 1 && info.Members[1].NumAssigned() == 1
		})
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("the rebalance took %v", took)
		}
		pass(time.Minute) // wait, to see that no member is removed later
		if n := len(w.cluster.GroupInfo(theGroup).Members); n != 2 || len(lost.all()) != 1 {
			t.Errorf("%d members, lanes lost: %v", n, lost.all())
		}
		close(s.goOn)
		w.waitCommitted(5 * time.Minute)
		w.expectOnce(numberedIDs("a", 1, 10)...)
		w.expectOnce(numberedIDs("b", 1, 10)...)
		if err := old.leave(); err != nil {
			t.Error(err)
		}
	})
	inWorld(t, "trap_31_a_stop_in_the_middle_of_a_revocation_ends_within_its_drain", 2, func(t *testing.T, w *world) {
		ids := append(numberedIDs("a", 1, 10), numberedIDs("b", 1, 10)...)
		w.publish(0, ids[:10]...)
		w.publish(1, ids[10:]...)
		began := make(chan bool, 100)
		old := w.start(func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			began <- true
			<-ctx.Done() // the handler returns only after a stop or a revocation
			return ctx.Err()
		}, nil, func(c *settings) { c.Drain, c.Timeout = 5*time.Second, time.Hour })
		<-began
		other := w.start(count, nil, nil)
		pass(5 * time.Second) // during this time, the old member must give up a lane and waits for its handlers
		since := time.Now()
		_ = old.leave()
		if took := time.Since(since); took > 10*time.Second {
			t.Errorf("the stop took %v", took)
		}
		w.waitCommitted(5 * time.Minute)
		w.expectOnce(ids...)
		if err := other.leave(); err != nil {
			t.Error(err)
		}
	})
}

func TestWorkDoneInAnyOrderIsNotLost(t *testing.T) {
	t.Run("trap_33_what_ended_in_any_order_before_a_crash_is_neither_lost_nor_doubled", func(t *testing.T) {
		for seed := range uint64(5) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 33))
				w := newWorld(t, 2)
				ids := append(numberedIDs("a", 1, 150), numberedIDs("b", 1, 150)...)
				w.publish(0, ids[:150]...)
				w.publish(1, ids[150:]...)
				waits := map[string]time.Duration{}
				for _, id := range ids {
					waits[id] = time.Duration(random.IntN(200)) * time.Millisecond
				}
				for range 4 {
					p := w.start(func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
						pass(waits[m.Identity.ID])
						return count(ctx, tx, m)
					}, nil, func(c *settings) {
						c.Lanes, c.Workers, c.Batch.MaxSize = consumer.LanesNone, 8, 1+random.IntN(10)
					})
					pass(time.Duration(random.IntN(2500)) * time.Millisecond)
					for partition := range int32(2) {
						w.nothingSkipped(partition, seed)
					}
					p.kill()
				}
				w.start(count, nil, nil)
				w.waitCommitted(5 * time.Minute)
				w.expectOnce(ids...)
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			})
		}
	})
}

// nothingSkipped fails if the group's offset has passed a message that had no effect.
func (w *world) nothingSkipped(partition int32, seed uint64) {
	w.t.Helper()
	prefix := string(rune('a' + partition))
	for n := int64(1); n <= w.committedOffset(partition); n++ {
		if id := fmt.Sprintf("%s%04d", prefix, n); w.effect(id) != 1 {
			w.t.Errorf("seed %d: the group's offset is %d and %s has taken effect %d times", seed, w.committedOffset(partition), id, w.effect(id))
		}
	}
}
