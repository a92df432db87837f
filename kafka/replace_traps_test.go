package kafka

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kerr"
)

// demandReplacement asks for a new member.
func (s *Source) demandReplacement() {
	s.member.demandReplacement("a test", topicPartition{})
}

func TestAMemberIsReplacedOnce(t *testing.T) {
	bubble(t, "trap_T34_what_is_found_while_its_lanes_are_handed_over_does_not_replace_the_next_one", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		s := newStuck()
		text := &lockedBuffer{}
		p := w.start(s.handle, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(text, nil)) }, nil)
		<-s.began
		refuse(w.cluster, kerr.UnknownTopicID, 1) // the commit of what is handed over
		p.source.demandReplacement()
		w.until(5*time.Second, "it hands over", func() bool {
			p.source.lanes.mu.Lock()
			defer p.source.lanes.mu.Unlock()
			return p.source.lanes.order[0].leaving
		})
		close(s.goOn)
		w.settles(time.Minute)
		pass(time.Minute)
		w.once("a")
		if n := strings.Count(text.String(), "joining the group anew"); n != 1 || !strings.Contains(text.String(), "its topic was deleted") {
			t.Errorf("it joined anew %d times:\n%.3000s", n, text.String())
		}
	})
	t.Run("trap_26_a_lane_that_is_given_while_others_are_handed_over_is_told_as_lost", func(t *testing.T) {
		t.Parallel() // a rebalance takes a heartbeat
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
			t.Errorf("of two lanes %d are here; it was told %v", here, first.told)
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
		member := r.member.current()
		go func() {
			r.group.revoked(t.Context(), member, map[string][]int32{"orders": {0}})
			close(revoked)
		}()
		select {
		case <-revoked:
			t.Error("the group hears that it is given up while it is handed over")
		case <-time.After(200 * time.Millisecond):
		}
		<-goOn
		select {
		case <-goOn:
		case <-revoked:
		}
		<-revoked
		if n := timesTold(r.notes(), "revoking orders/0"); n != 1 {
			t.Errorf("it was told %v", r.notes())
		}
	})
}
