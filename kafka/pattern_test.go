package kafka

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// matching lets a process read what matches a pattern.
func matching(pattern string, more ...func(*Config)) func(*Config) {
	return func(c *Config) {
		c.Topics, c.TopicPattern = nil, pattern
		for _, change := range more {
			change(c)
		}
	}
}

// create makes a topic with messages in it.
func (w *world) create(topic string, ids ...string) {
	w.t.Helper()
	if err := w.cluster.CreateTopic(topic, 2, nil); err != nil {
		w.t.Fatal(err)
	}
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

// applied waits until these took effect.
func (w *world) applied(within time.Duration, ids ...string) {
	w.t.Helper()
	w.until(within, strings.Join(ids, ", ")+" took effect", func() bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return w.effect(id) == 0 })
	})
	w.once(ids...)
}

// allOrders is the pattern of orders and what is below them.
const allOrders = `orders(\..*)?`

func TestTopicsByPattern(t *testing.T) {
	bubble(t, "I6_topics_that_match_are_read_and_others_are_not", func(t *testing.T) {
		w := newWorld(t, 2)
		w.publish(0, "a")
		w.create("orders.eu", "b")
		w.create("reorders.eu", "not whole")
		w.create("payments", "other")
		w.start(count, matching(allOrders), nil)
		w.applied(time.Minute, "a", "b")
		w.publishTo("payments", "other")
		w.publishTo("orders.eu", "c")
		w.applied(time.Minute, "c")
		w.without("not whole", "other")
	})
	bubble(t, "I6_a_topic_that_is_created_later_is_read_from_its_beginning_within_the_interval", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "history")
		w.start(count, matching(allOrders, now), nil)
		w.begun(1)
		w.create("orders.eu", numbered("eu", 1, 20)...)
		w.applied(metadataAge+5*time.Second, numbered("eu", 1, 20)...)
		w.without("history")
	})
	bubble(t, "I6_a_topic_that_is_created_while_no_process_runs_is_read_from_its_beginning_under_start_now", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "history")
		p := w.start(count, matching(allOrders, now), nil)
		w.begun(1)
		_ = p.leave()
		w.create("orders.eu", numbered("eu", 1, 20)...)
		w.publish(0, "meanwhile")
		w.start(count, matching(allOrders, now), nil)
		w.applied(time.Minute, append(numbered("eu", 1, 20), "meanwhile")...)
		w.without("history")
	})
}

func TestWhatAPatternPassesOver(t *testing.T) {
	bubble(t, "I6_a_pattern_that_matches_nothing_waits_and_is_not_idle", func(t *testing.T) {
		w := newWorld(t, 1)
		text := &lockedBuffer{}
		log := slog.New(slog.NewTextHandler(text, nil))
		p := w.start(count, matching(`payments\..*`, now, func(c *Config) { c.Logger = log }), func(c *settings) { whenIdle(c); c.Logger = log })
		pass(2*time.Minute + time.Second)
		select {
		case err := <-p.ended:
			p.ended <- err
			t.Fatalf("the run has ended: %v", err)
		default:
		}
		if n := strings.Count(text.String(), "no topic matches the pattern"); n < 2 || n > 3 {
			t.Errorf("it is told %d times in two minutes:\n%s", n, text.String())
		}
		if ready, why := p.consumer.Ready(); !ready || strings.Contains(text.String(), "does not work") {
			t.Errorf("ready: %v, %s\n%s", ready, why, text.String())
		}
		w.create("payments.eu", "a", "b")
		if err := p.ends(t); err != nil {
			t.Error(err)
		}
		w.once("a", "b")
	})
	bubble(t, "I6_the_topic_for_dead_letters_and_the_brokers_own_are_never_read", func(t *testing.T) {
		w := newWorld(t, 1, kfake.SeedTopics(1, "orders.dead", "__orders"))
		w.publish(0, "a")
		w.publishTo("orders.dead", "dead")
		w.publishTo("__orders", "own")
		text := &lockedBuffer{}
		log := slog.New(slog.NewTextHandler(text, nil))
		w.start(count, matching(`.*`, func(c *Config) { c.DeadLetters, c.Logger = "orders.dead", log }), nil)
		w.applied(time.Minute, "a")
		pass(time.Minute)
		w.without("dead", "own")
		if n := strings.Count(text.String(), "it is not read"); n != 1 || !strings.Contains(text.String(), "topic=orders.dead") {
			t.Errorf("it is told %d times:\n%s", n, text.String())
		}
	})
	bubble(t, "I6_a_topic_that_is_deleted_is_let_go_and_the_others_go_on", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		w.create("orders.eu", "b")
		text := &lockedBuffer{}
		log := slog.New(slog.NewTextHandler(text, nil))
		p := w.start(count, matching(allOrders, func(c *Config) { c.Logger = log }), func(c *settings) { c.Logger = log })
		w.applied(time.Minute, "a", "b")
		if err := w.cluster.DeleteTopic("orders.eu"); err != nil {
			t.Fatal(err)
		}
		w.publish(0, "c")
		w.applied(time.Minute, "c")
		pass(time.Minute)
		w.publish(0, "d")
		w.applied(time.Minute, "d")
		if n := strings.Count(text.String(), "a topic was deleted"); n != 1 || strings.Contains(text.String(), "does not work") {
			t.Errorf("the deletion is told %d times:\n%s", n, text.String())
		}
		if known := p.source.beginnings.topicsKnown(); !slices.Equal(known, []string{theTopic}) {
			t.Errorf("law 11: the beginnings are known of %v", known)
		}
		w.create("orders.eu", "e")
		w.applied(time.Minute, "e")
	})
}

func TestALookAtTopicsByPattern(t *testing.T) {
	bubble(t, "trap_T92_that_lacks_a_topic_makes_no_other_topic_of_it", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		text := &lockedBuffer{}
		p := w.start(count, matching(`orders`, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(text, nil)) }), nil)
		w.settles(time.Minute)
		w.cluster.ControlKey(int16(kmsg.Metadata), func(request kmsg.Request) (kmsg.Response, error, bool) {
			asked := request.(*kmsg.MetadataRequest)
			if asked.Topics != nil {
				w.cluster.KeepControl()
				return nil, nil, false
			}
			return asked.ResponseKind(), nil, true // as of a broker that has just started
		})
		if err := p.source.topics.same(t.Context()); err != nil {
			t.Error(err)
		}
		pass(time.Minute)
		if strings.Contains(text.String(), "joining the group anew") {
			t.Errorf("the log says:\n%.3000s", text.String())
		}
	})
	bubble(t, "I6_before_the_first_join_does_not_say_that_none_matches", func(t *testing.T) {
		w := newWorld(t, 1)
		text := &lockedBuffer{}
		s := unjoined(t, matching(`orders`, func(c *Config) {
			c.Brokers, c.Logger = w.cluster.ListenAddrs(), slog.New(slog.NewTextHandler(text, nil))
		}))
		s.brokers.dial = w.network.DialContext
		side, err := kgo.NewClient(s.brokers.options()...)
		if err != nil {
			t.Fatal(err)
		}
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
		"I6_as_an_invalid_expression":      {nil, "orders.(*", `TopicPattern "orders.(*" is no regular expression (RE2)`},
		"I6_also_if_anchors_make_it_valid": {nil, "orders)|(x", "is no regular expression"},
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
	bubble(t, "I6_nothing_is_read_while_it_is_not_known_which_topics_there_were", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		if err := w.store.SavePosition(t.Context(), "billing", stored.FirstTopicsName(theGroup), source.Position{Length: 1, Check: []byte{stored.FirstTopicsForm}}); err != nil {
			t.Fatal(err)
		}
		text := w.logged(matching(`orders`))
		pass(time.Minute)
		w.without("a")
		if !strings.Contains(text.String(), "which topics were there when group billing first joined is not known") || !strings.Contains(text.String(), "newer release") {
			t.Errorf("the log does not say why:\n%.2000s", text.String())
		}
	})
}

func (b *beginnings) topicsKnown() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.known))
}
