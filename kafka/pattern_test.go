package kafka

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// withPattern makes a process read the topics that match a pattern.
func withPattern(pattern string, more ...func(*Config)) func(*Config) {
	return func(c *Config) {
		c.Topics, c.TopicPattern = nil, pattern
		for _, change := range more {
			change(c)
		}
	}
}

// create creates a topic and publishes messages to the topic.
func (w *world) create(topic string, ids ...string) {
	w.t.Helper()
	must(w.t, w.cluster.CreateTopic(topic, 2, nil))
	w.producer = w.client()
	w.publishTo(topic, ids...)
}

func (w *world) publishTo(topic string, ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		r := order(0, id)
		r.Topic = topic
		w.produce(r)
	}
}

// waitApplied waits until the messages with the given ids have taken effect.
func (w *world) waitApplied(within time.Duration, ids ...string) {
	w.t.Helper()
	w.waitUntil(within, strings.Join(ids, ", ")+" took effect", func() bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return w.effect(id) == 0 })
	})
	w.expectOnce(ids...)
}

// A pattern for the topic orders and all topics that begin with "orders.".
const allOrders = `orders(\..*)?`

func TestTopicsByPattern(t *testing.T) {
	inWorld(t, "I6_topics_that_match_are_read_and_others_are_not", 2, func(t *testing.T, w *world) {
		w.publish(0, "a")
		w.create("orders.eu", "b")
		w.create("reorders.eu", "not whole")
		w.create("payments", "other")
		w.start(count, withPattern(allOrders), nil)
		w.waitApplied(time.Minute, "a", "b")
		w.publishTo("payments", "other")
		w.publishTo("orders.eu", "c")
		w.waitApplied(time.Minute, "c")
		w.expectNoEffect("not whole", "other")
	})
	inWorld(t, "I6_a_topic_that_is_created_later_is_read_from_its_beginning_within_the_interval", 1, func(t *testing.T, w *world) {
		w.publish(0, "history")
		w.start(count, withPattern(allOrders, startNow), nil)
		w.waitForOffset(1)
		w.create("orders.eu", numberedIDs("eu", 1, 20)...)
		w.waitApplied(metadataAge+5*time.Second, numberedIDs("eu", 1, 20)...)
		w.expectNoEffect("history")
	})
	inWorld(t, "I6_a_topic_that_is_created_while_no_process_runs_is_read_from_its_beginning_under_start_now", 1, func(t *testing.T, w *world) {
		w.publish(0, "history")
		p := w.start(count, withPattern(allOrders, startNow), nil)
		w.waitForOffset(1)
		_ = p.leave()
		w.create("orders.eu", numberedIDs("eu", 1, 20)...)
		w.publish(0, "meanwhile")
		w.start(count, withPattern(allOrders, startNow), nil)
		w.waitApplied(time.Minute, append(numberedIDs("eu", 1, 20), "meanwhile")...)
		w.expectNoEffect("history")
	})
}

func TestWhatAPatternPassesOver(t *testing.T) {
	inWorld(t, "I6_a_pattern_that_matches_nothing_waits_and_is_not_idle", 1, func(t *testing.T, w *world) {
		text := &lockedBuffer{}
		log := logTo(text)
		p := w.start(count, withPattern(`payments\..*`, startNow, func(c *Config) { c.Logger = log }), func(c *settings) { whenIdle(c); c.Logger = log })
		pass(2*time.Minute + time.Second)
		select {
		case err := <-p.ended:
			p.ended <- err
			t.Fatalf("the run has ended: %v", err)
		default:
		}
		logSays(t, text, "no topic matches the pattern", 2, 3)
		if ready, why := p.consumer.Ready(); !ready || strings.Contains(text.String(), "does not work") {
			t.Errorf("ready: %v, %s\n%s", ready, why, text.String())
		}
		w.create("payments.eu", "a", "b")
		must(t, p.waitEnd(t))
		w.expectOnce("a", "b")
	})
	bubble(t, "I6_the_topic_for_dead_letters_and_the_brokers_own_are_never_read", func(t *testing.T) {
		w := newWorld(t, 1, kfake.SeedTopics(1, "orders.dead", "__orders"))
		w.publish(0, "a")
		w.publishTo("orders.dead", "dead")
		w.publishTo("__orders", "own")
		text := w.startWithLog(withPattern(`.*`, func(c *Config) { c.DeadLetters = "orders.dead" }))
		w.waitApplied(time.Minute, "a")
		pass(time.Minute)
		w.expectNoEffect("dead", "own")
		if n := strings.Count(text.String(), "which is not read"); n != 1 || !strings.Contains(text.String(), "topic=orders.dead") {
			t.Errorf("it is logged %d times:\n%s", n, text.String())
		}
	})
	inWorld(t, "I6_a_topic_that_is_deleted_is_let_go_and_the_others_go_on", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		w.create("orders.eu", "b")
		text := w.startWithLog(withPattern(allOrders))
		p := w.processes["process 1"]
		w.waitApplied(time.Minute, "a", "b")
		must(t, w.cluster.DeleteTopic("orders.eu"))
		w.publish(0, "c")
		w.waitApplied(time.Minute, "c")
		pass(time.Minute)
		w.publish(0, "d")
		w.waitApplied(time.Minute, "d")
		if n := strings.Count(text.String(), "a topic was deleted"); n != 1 || strings.Contains(text.String(), "does not work") {
			t.Errorf("the deletion is logged %d times:\n%s", n, text.String())
		}
		if known := p.source.beginnings.topicsKnown(); !slices.Equal(known, []string{theTopic}) {
			t.Errorf("law 11: beginnings are stored for %v", known)
		}
		w.create("orders.eu", "e")
		w.waitApplied(time.Minute, "e")
	})
}

func TestALookAtTopicsByPattern(t *testing.T) {
	inWorld(t, "trap_T92_that_lacks_a_topic_makes_no_other_topic_of_it", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		text := &lockedBuffer{}
		p := w.startSettled(withPattern(`orders`, func(c *Config) { c.Logger = logTo(text) }))
		w.cluster.ControlKey(int16(kmsg.Metadata), func(request kmsg.Request) (kmsg.Response, error, bool) {
			asked := request.(*kmsg.MetadataRequest)
			if asked.Topics != nil {
				w.cluster.KeepControl()
				return nil, nil, false
			}
			return asked.ResponseKind(), nil, true // the answer of a broker that has just started
		})
		if err := p.source.topics.checkTopicIDs(t.Context()); err != nil {
			t.Error(err)
		}
		pass(time.Minute)
		if strings.Contains(text.String(), "joining the group again") {
			t.Errorf("the log says:\n%.3000s", text.String())
		}
	})
	inWorld(t, "I6_before_the_first_join_does_not_say_that_none_matches", 1, func(t *testing.T, w *world) {
		text := &lockedBuffer{}
		s := newUnjoinedSource(t, withPattern(`orders`, func(c *Config) {
			c.Brokers, c.Logger = w.cluster.ListenAddrs(), logTo(text)
		}))
		s.brokers.dial = w.network.DialContext
		side, err := kgo.NewClient(s.brokers.clientOptions()...)
		must(t, err)
		defer side.Close()
		s.brokers.asking = side
		if err := s.beginnings.look(t.Context()); err != nil || text.String() != "" {
			t.Errorf("%v, the log says:\n%s", err, text.String())
		}
	})
}

func TestAPatternThatCannotBeReadIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		topics  []string
		pattern string
		want    string
	}{
		"I6_beside_a_list_of_topics":       {[]string{"orders"}, "orders", "Topics and TopicPattern are both set"},
		"I6_where_there_is_no_list_either": {nil, "", "Topics and TopicPattern are empty"},
		"I6_as_an_invalid_expression":      {nil, "orders.(*", `TopicPattern "orders.(*" is not a regular expression (RE2)`},
		"I6_also_if_anchors_make_it_valid": {nil, "orders)|(x", "is not a regular expression"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(quiet(Config{Brokers: []string{"a:1"}, Topics: c.topics, TopicPattern: c.pattern, Group: "billing"}))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it says: %v", err)
			}
		})
	}
}

func TestAStoreThatIsAwayHoldsUpTopicsByPattern(t *testing.T) {
	inWorld(t, "I6_nothing_is_read_while_it_is_not_known_which_topics_there_were", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		must(t, w.store.SavePosition(t.Context(), "billing", stored.FirstTopicsName(theGroup), source.Position{Length: 1, Check: []byte{stored.FirstTopicsForm}}))
		text := w.startWithLog(withPattern(`orders`))
		pass(time.Minute)
		w.expectNoEffect("a")
		if !strings.Contains(text.String(), "cannot read which topics existed when group billing first joined") || !strings.Contains(text.String(), "newer release") {
			t.Errorf("the log does not say why:\n%.2000s", text.String())
		}
	})
}

func (b *beginnings) topicsKnown() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.known))
}

func TestTopicsThatComeAndGoDisturbNothingElse(t *testing.T) {
	inWorld(t, "I6_a_topic_whose_deletion_hangs_replaces_the_member_less_and_less_often", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		w.create("orders.eu", "b")
		text := w.startWithLog(withPattern(`orders.*`))
		w.waitApplied(time.Minute, "a", "b")
		hangs := w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.eu", Err: kerr.UnknownTopicID, Count: -1})
		pass(5 * time.Minute)
		logSays(t, text, "joining the group again", 5, 12)
		w.publish(0, "c")
		w.waitApplied(2*time.Second, "c")
		hangs.Remove()
		w.publishTo("orders.eu", "d")
		w.waitApplied(2*time.Minute, "d")
	})
	inWorld(t, "I6_a_store_that_does_not_answer_where_a_topic_begins_holds_up_that_topic_only", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		var reports atomic.Int32
		p := w.start(count, withPattern(`orders.*`, func(c *Config) { c.Observe = func([]LaneState) { reports.Add(1) } }), nil)
		w.waitApplied(time.Minute, "a")
		p.storeHangs.Store(true)
		w.create("orders.eu", "b")
		pass(2 * metadataAge)
		before := reports.Load()
		pass(time.Minute)
		if n := reports.Load() - before; n < 50 {
			t.Errorf("lanes were reported %d times within a minute", n)
		}
		w.expectNoEffect("b")
		p.storeHangs.Store(false)
		w.waitApplied(time.Minute, "b")
	})
	inWorld(t, "trap_T95_a_topic_that_the_group_shares_out_late_is_not_idle", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		p := w.startSettled(withPattern(`orders.*`, func(c *Config) { c.SessionTimeout = 40 * time.Second }))
		w.slowJoins(20 * time.Second)
		w.create("orders.eu", "b")
		began := time.Now()
		for w.effect("b") == 0 && time.Since(began) < 2*time.Minute {
			if idle, _, err := p.source.Info().Idle(t.Context()); err != nil || idle && w.effect("b") == 0 {
				t.Fatalf("after %v: idle %t, %v", time.Since(began), idle, err)
			}
			pass(time.Second)
		}
		w.expectOnce("b")
		if time.Since(began) < 20*time.Second {
			t.Error("the topics were not assigned late")
		}
		w.waitUntil(time.Minute, "the source is idle again", func() bool {
			idle, left, err := p.source.Info().Idle(t.Context())
			return idle && err == nil && len(left) == 0
		})
	})
	inWorld(t, "trap_T95_a_topic_that_was_added_is_shared_out_by_the_brokers_where_they_balance", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		p := w.startSettled(withPattern(`orders.*`, func(c *Config) { c.NextGen, c.SessionTimeout = true, 0 }))
		w.create("orders.eu", "b")
		w.waitUntil(time.Minute, "it is idle", func() bool {
			idle, left, err := p.source.Info().Idle(t.Context())
			must(t, err)
			return idle && len(left) == 0
		})
		w.expectOnce("a", "b")
	})
}

func TestWhoReadsATopicThatWasAdded(t *testing.T) {
	s := newUnjoinedSource(t, nil)
	l := newLane(topicPartition{"added", 0}, 1)
	s.lanes.byPartition[l.topicPartition] = l
	some, all := kadm.TopicsSet{}, kadm.TopicsSet{}
	some.Add("added", 0)
	all.Add("added", 0, 1)
	for name, c := range map[string]struct {
		given memberPartitions
		want  bool
	}{
		"trap_T95_nobody": {memberPartitions{}, false},
		"trap_T95_this_member_reads_a_part_and_nobody_else":    {memberPartitions{"own": some}, false},
		"trap_T95_another_reads_all":                           {memberPartitions{"own": kadm.TopicsSet{}, "other": all}, true},
		"trap_T95_this_member_was_given_what_it_does_not_have": {memberPartitions{"own": all}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if shared := s.isAssigned(c.given, "own", "added", 2); shared != c.want {
				t.Errorf("shared is %t", shared)
			}
		})
	}
	t.Run("trap_T95_this_member_has_all", func(t *testing.T) {
		l := newLane(topicPartition{"added", 1}, 2)
		s.lanes.byPartition[l.topicPartition] = l
		if !s.isAssigned(memberPartitions{"own": all}, "own", "added", 2) {
			t.Error("the topic is not assigned")
		}
	})
}
