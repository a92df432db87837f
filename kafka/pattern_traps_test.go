package kafka

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestTopicsThatComeAndGoDisturbNothingElse(t *testing.T) {
	bubble(t, "I6_a_topic_whose_deletion_hangs_replaces_the_member_less_and_less_often", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		w.create("orders.eu", "b")
		text := &lockedBuffer{}
		w.start(count, matching(`orders.*`, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(text, nil)) }), nil)
		w.applied(time.Minute, "a", "b")
		hangs := w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.eu", Err: kerr.UnknownTopicID, Count: -1})
		pass(5 * time.Minute)
		if n := strings.Count(text.String(), "joining the group anew"); n < 5 || n > 12 {
			t.Errorf("within five minutes it joined anew %d times", n)
		}
		w.publish(0, "c")
		w.applied(2*time.Second, "c")
		hangs.Remove()
		w.publishTo("orders.eu", "d")
		w.applied(2*time.Minute, "d")
	})
	bubble(t, "I6_a_store_that_does_not_answer_where_a_topic_begins_holds_up_that_topic_only", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		var reports atomic.Int32
		p := w.start(count, matching(`orders.*`, func(c *Config) { c.Observe = func([]LaneState) { reports.Add(1) } }), nil)
		w.applied(time.Minute, "a")
		p.storeHangs.Store(true)
		w.create("orders.eu", "b")
		pass(2 * metadataAge)
		before := reports.Load()
		pass(time.Minute)
		if n := reports.Load() - before; n < 50 {
			t.Errorf("lanes were reported %d times within a minute", n)
		}
		w.without("b")
		p.storeHangs.Store(false)
		w.applied(time.Minute, "b")
	})
	bubble(t, "trap_T95_a_topic_that_the_group_shares_out_late_is_not_idle", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		p := w.start(count, matching(`orders.*`, func(c *Config) { c.SessionTimeout = 40 * time.Second }), nil)
		w.settles(time.Minute)
		w.slowJoins(20 * time.Second)
		w.create("orders.eu", "b")
		began := time.Now()
		for w.effect("b") == 0 && time.Since(began) < 2*time.Minute {
			if idle, _, err := p.source.Info().Idle(t.Context()); err != nil || idle && w.effect("b") == 0 {
				t.Fatalf("after %v: idle %t, %v", time.Since(began), idle, err)
			}
			pass(time.Second)
		}
		w.once("b")
		if time.Since(began) < 20*time.Second {
			t.Error("it was not shared out late")
		}
		w.until(time.Minute, "it is idle again", func() bool {
			idle, left, err := p.source.Info().Idle(t.Context())
			return idle && err == nil && len(left) == 0
		})
	})
	bubble(t, "trap_T95_a_topic_that_was_added_is_shared_out_by_the_brokers_where_they_balance", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		p := w.start(count, matching(`orders.*`, func(c *Config) { c.NextGen, c.SessionTimeout = true, 0 }), nil)
		w.settles(time.Minute)
		w.create("orders.eu", "b")
		w.until(time.Minute, "it is idle", func() bool {
			idle, left, err := p.source.Info().Idle(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return idle && len(left) == 0
		})
		w.once("a", "b")
	})
}

func TestWhoReadsATopicThatWasAdded(t *testing.T) {
	s := unjoined(t, nil)
	l := newLane(topicPartition{"added", 0}, 1)
	s.lanes.byPartition[l.topicPartition] = l
	some, all := kadm.TopicsSet{}, kadm.TopicsSet{}
	some.Add("added", 0)
	all.Add("added", 0, 1)
	for name, c := range map[string]struct {
		given shares
		want  bool
	}{
		"trap_T95_nobody": {shares{}, false},
		"trap_T95_this_member_reads_a_part_and_nobody_else":    {shares{"own": some}, false},
		"trap_T95_another_reads_all":                           {shares{"own": kadm.TopicsSet{}, "other": all}, true},
		"trap_T95_this_member_was_given_what_it_does_not_have": {shares{"own": all}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if shared := s.shared(c.given, "own", "added", 2); shared != c.want {
				t.Errorf("shared is %t", shared)
			}
		})
	}
	t.Run("trap_T95_this_member_has_all", func(t *testing.T) {
		l := newLane(topicPartition{"added", 1}, 2)
		s.lanes.byPartition[l.topicPartition] = l
		if !s.shared(shares{"own": all}, "own", "added", 2) {
			t.Error("it is not shared")
		}
	})
}
