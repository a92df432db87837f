package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestAnAssignmentWaitsForThePollUnderWayAndKeepsTheNextOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		ctx, cancel := g.enter(t.Context())
		if ctx == nil {
			t.Fatal("no poll although the gate is free")
		}
		defer cancel()
		held, entered := false, false
		go func() { g.hold(); held = true }()
		synctest.Wait()
		if ctx.Err() == nil || held {
			t.Errorf("the poll continues: %v; the gate is held: %v", ctx.Err() == nil, held)
		}
		g.leave()
		synctest.Wait()
		if !held {
			t.Fatal("the gate is not held though the poll has ended")
		}
		go func() {
			ctx, cancel := g.enter(t.Context())
			entered = ctx != nil
			cancel()
			g.leave()
		}()
		synctest.Wait()
		if entered {
			t.Fatal("a poll began while the gate was held")
		}
		g.release()
		synctest.Wait()
		if !entered {
			t.Fatal("no poll after the gate was released")
		}
	})
}

func TestAPollThatWaitsForTheGateEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		g.hold()
		ctx, cancel := context.WithCancel(t.Context())
		ended := false
		go func() {
			inner, _ := g.enter(ctx)
			ended = inner == nil
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !ended {
			t.Error("it waits on")
		}
		g.release()
	})
}

func TestWhoIsRousedLooksOnce(t *testing.T) {
	var g gate
	g.wakeUp()
	if ctx, _ := g.enter(t.Context()); ctx != nil {
		t.Error("a poll began although there was work")
	}
	ctx, cancel := g.enter(t.Context())
	defer cancel()
	if ctx == nil {
		t.Fatal("roused twice by one call")
	}
	g.wakeUp()
	if ctx.Err() == nil {
		t.Error("the current poll was not interrupted")
	}
	g.leave()
}

// isHeld reports whether an assignment waits for the gate or has closed the gate.
func (g *gate) isHeld() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.holders > 0
}

// betweenPollAndLane makes the group remove a reader that has polled records but has not yet added the records to their
// lane. The method waits until the partition is assigned again, or until the gate delays the assignment.
func (r *reader) betweenPollAndLane(forget func()) {
	forget()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		if timesTold(r.notifications(), "given orders/0") == 2 || r.gate.isHeld() {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			r.t.Errorf("the partition is not assigned again; the observer was told %v", r.notifications())
			return
		}
	}
}

func TestPollsAndAssignmentsTakeTurns(t *testing.T) {
	t.Parallel() // slow, because the client learns from a heartbeat that the group has removed it
	t.Run("law_8_what_was_polled_before_a_partition_is_given_again_is_not_of_its_new_epoch", func(t *testing.T) {
		config, c := setUp(t)
		config.SessionTimeout = 6 * time.Second // the heartbeat interval is a third of this time
		put(t, c, "orders", 0, makeValues(10)...)
		r := read(t, config)
		former := r.take(5) // the test acks none of these deliveries
		happened := false
		r.between = func() {
			if !happened {
				happened = true
				r.betweenPollAndLane(func() { remove(t, c, r) })
			}
		}
		var latter []source.Delivery
		for len(latter) < 10 {
			got := r.take(1)
			if got[0].Lane == former[0].Lane {
				t.Fatalf("the former epoch delivered %s after the partition was lost", got[0].Message.Body)
			}
			if want := fmt.Sprint(len(latter)); string(got[0].Message.Body) != want {
				t.Fatalf("law 8: the new epoch delivers %s where %s is next; what lies between would count as done", got[0].Message.Body, want)
			}
			r.ack(got...)
			latter = append(latter, got...)
		}
		if !happened {
			t.Fatal("nothing happened between a poll and its lanes")
		}
		wantOffset(t, c, 0, 10)
	})
}

// Closing the source and replacing its member may happen at the same time. Only one of the two may close the
// client.
func TestAMemberIsLetGoByOneAlone(t *testing.T) {
	m := &member{onReplacementDemand: func() {}, client: new(kgo.Client)}
	if m.retire() == nil {
		t.Error("no caller gets the client")
	}
	if m.retire() != nil {
		t.Error("two callers get the client")
	}
}

func TestASourceThatIsClosedWhileItJoinsAsksNobody(t *testing.T) {
	s := newUnjoinedSource(t, nil)
	s.brokers.markClosed() // Close does this first; join has sent no request yet
	if err := s.join(t.Context()); err != nil || s.brokers.client() != nil {
		t.Errorf("it asks: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.Fetch(t.Context(), wide); !errors.Is(err, semel.ErrClosed) {
		t.Errorf("Fetch says: %v", err)
	}
}

func TestTheLaterMembersThatOneReasonReplaces(t *testing.T) {
	hangs, other := []reason{{"deleted", allOf("hangs")}}, []reason{{"lost", topicPartition{"orders", 1}}}
	over := func(b backoff, now time.Time, reasons []reason) bool {
		_, found := b.takeDue(now, reasons)
		return found
	}
	t.Run("I6_are_replaced_after_pauses_that_double", func(t *testing.T) {
		b, now := backoff{}, time.Now()
		if !over(b, now, hangs) || over(b, now.Add(shortestPause/2), hangs) {
			t.Error("the first member is not replaced at once, or the second one is")
		}
		for pause := shortestPause; pause < longestPause; pause *= 2 {
			if now = now.Add(pause); !over(b, now, hangs) {
				t.Fatalf("after %v it is not replaced", pause)
			}
			if 2*pause < longestPause && over(b, now.Add(2*pause-1), hangs) {
				t.Fatalf("before %v it is replaced", 2*pause)
			}
		}
		now = now.Add(longestPause + lasting + 1)
		if !over(b, now, hangs) || !over(b, now.Add(shortestPause), hangs) {
			t.Error("the pauses do not start again after a long-lived member")
		}
	})
	t.Run("I6_are_replaced_at_once_for_another_reason", func(t *testing.T) {
		b, now := backoff{}, time.Now()
		over(b, now, hangs)
		if first, found := b.takeDue(now, append(hangs, other...)); !found || first != other[0] {
			t.Errorf("%t, for %v", found, first)
		}
		if over(b, now.Add(shortestPause-1), append(hangs, other...)) {
			t.Error("neither reason waits")
		}
	})
	t.Run("I6_are_replaced_for_all_reasons_at_once", func(t *testing.T) {
		b, now := backoff{}, time.Now()
		over(b, now, hangs)
		now = now.Add(shortestPause / 2)
		over(b, now, append(hangs, other...))
		if over(b, now.Add(shortestPause-1), hangs) {
			t.Error("the waiting reason was not included in the other's attempt")
		}
	})
}

func TestLanesOfAGenerationThatIsOverAreReadUntilTheMemberIsReplaced(t *testing.T) {
	s, l := withLane(t, nil)
	s.member.client = new(kgo.Client)
	now := time.Now()
	l.owner, l.refused, l.refusedAt = owner{"m", 1}, owner{"m", 1}, now.Add(-2*rebalanceTimeout)
	s.lanes.findOrphans()
	s.group.backoff.takeDue(now, s.member.replaceReasons()) // the reason already has a pause, from the previous member
	s.group.replaceMember(now.Add(shortestPause / 2))
	if l.ended || s.member.currentClient() == nil {
		t.Errorf("the lane is lost: %t, the member: %v", l.ended, s.member.currentClient())
	}
}

func (s *Source) demandReplacement() {
	s.member.demandReplacement("a test", topicPartition{})
}

func TestAMemberIsReplacedOnce(t *testing.T) {
	inWorld(t, "trap_T34_what_is_found_while_its_lanes_are_handed_over_does_not_replace_the_next_one", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		s := newStuck()
		text := &lockedBuffer{}
		p := w.start(s.handle, func(c *Config) { c.Logger = logTo(text) }, nil)
		<-s.began
		refuse(w.cluster, kerr.UnknownTopicID, 1) // the refused commit is the commit during the handover
		p.source.demandReplacement()
		w.waitUntil(5*time.Second, "it hands over", func() bool { return p.firstLane().leaving })
		close(s.goOn)
		w.waitCommitted(time.Minute)
		pass(time.Minute)
		w.expectOnce("a")
		if n := strings.Count(text.String(), "joining the group again"); n != 1 || !strings.Contains(text.String(), "its topic was deleted") {
			t.Errorf("the member joined again %d times:\n%.3000s", n, text.String())
		}
	})
	t.Run("trap_26_a_lane_that_is_given_while_others_are_handed_over_is_told_as_lost", func(t *testing.T) {
		t.Parallel() // slow: a rebalance waits for a heartbeat
		config, _, first, _ := pair(t)
		heir := read(t, config)
		heir.take(1)
		first.await("the loss of one of two", func(told []string) bool { return len(told) == 4 })
		first.revoking = func(context.Context, source.Lane) {
			heir.close()
			first.await("a lane that comes back", func(told []string) bool {
				return slices.Index(told, "revoking orders/0") >= 0 && strings.HasPrefix(told[len(told)-1], "given")
			})
		}
		first.demandReplacement()
		stop := first.keepFetching(nil)
		defer stop()
		first.await("both lanes", func(told []string) bool {
			return timesTold(told, "given orders/0")+timesTold(told, "given orders/1") >= 5
		})
		first.mu.Lock()
		defer first.mu.Unlock()
		here := 0
		for l, is := range first.here {
			if is {
				here++
				t.Logf("here is %+v", l)
			}
		}
		if here > 2 {
			t.Errorf("of two lanes %d are here; the observer was told %v", here, first.told)
		}
	})
	t.Run("trap_26_a_lane_that_is_asked_for_while_it_is_handed_over_is_handed_over_once", func(t *testing.T) {
		config, _ := setUp(t)
		r := read(t, config)
		stop := r.keepFetching(nil)
		defer stop()
		r.await("a lane", func(told []string) bool { return len(told) == 1 })
		goOn, revoked := make(chan bool), make(chan bool)
		r.revoking = func(context.Context, source.Lane) { goOn <- true }
		r.demandReplacement()
		r.await("its end", func(told []string) bool { return len(told) > 1 })
		member := r.member.currentClient()
		go func() {
			r.group.onRevoked(t.Context(), member, map[string][]int32{"orders": {0}})
			close(revoked)
		}()
		select {
		case <-revoked:
			t.Error("the group gets the lane while it is handed over")
		case <-time.After(200 * time.Millisecond):
		}
		<-goOn
		select {
		case <-goOn:
		case <-revoked:
		}
		<-revoked
		r.wantTold("revoking orders/0", 1)
	})
}
