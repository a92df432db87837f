package traps_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/memstore"
)

// create creates a topic whose name is the name of the test's topic, followed by the suffix.
func (w *world) create(suffix string) string {
	w.t.Helper()
	name := w.topic + suffix
	made := must.Get(w.admin.CreateTopic(w.t.Context(), 2, -1, nil, name))(w.t)
	w.t.Cleanup(func() { _, _ = w.admin.DeleteTopic(context.Background(), name) })
	services.AwaitTopic(w.t, w.brokers, name, made.ID)
	return name
}

func (w *world) publishTo(topic string, ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		r := w.order(0, id)
		r.Topic = topic
		w.produce(r)
	}
}

// waitApplied waits until the messages with the given ids took effect, and checks that each message took effect
// once.
func (w *world) waitApplied(ids ...string) {
	w.t.Helper()
	w.waitUntil(strings.Join(ids, ", ")+" took effect", func() bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return w.effect(id) == "" })
	})
	w.expectOnce(ids...)
}

// pattern returns a change of the configuration that makes a process read all topics of the test, with start: now.
func (w *world) pattern(more func(*kafka.Config)) func(*kafka.Config) {
	return func(c *kafka.Config) {
		c.Topics, c.TopicPattern, c.Start.Now = nil, w.topic+`(\..*)?`, true
		if more != nil {
			more(c)
		}
	}
}

// waitOffsets waits until the group has offsets for the test's topic.
func (w *world) waitOffsets() {
	w.t.Helper()
	w.waitUntil("the group has begun", func() bool {
		offsets, err := w.admin.FetchOffsets(context.Background(), w.group)
		_, known := offsets.Lookup(w.topic, 0)
		return err == nil && known
	})
}

// lines is a log that tests may read while the process writes to it.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) have(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), part)
}

func TestTopicsByPattern(t *testing.T) {
	for name, protocol := range map[string]func(*kafka.Config){
		"I6_a_topic_that_is_created_later_is_read_from_its_beginning_under_start_now": nil,
		"I6_also_where_the_brokers_share_partitions_out":                              func(c *kafka.Config) { c.NextGen = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.publish(0, "history")
			p := w.start(count, w.pattern(protocol))
			w.waitOffsets()
			w.publishTo(w.create(".eu"), "eu1", "eu2")
			w.waitApplied("eu1", "eu2")
			if err := p.leave(); err != nil {
				t.Error(err)
			}
			w.publishTo(w.create(".us"), "us1", "us2") // published while no process runs
			w.publish(0, "meanwhile")
			p = w.start(count, w.pattern(protocol))
			w.waitApplied("us1", "us2", "meanwhile")
			w.waitCommitted()
			w.publishTo(w.create(".asia"), "asia1")
			w.waitUntil("it is idle", func() bool {
				idle, _, err := p.source.Info().Idle(t.Context())
				if err != nil {
					t.Logf("not known yet: %v", err) // under load a broker may have no coordinator for a moment
				}
				return err == nil && idle && w.effect("asia1") != ""
			})
			if n := w.effect("history"); n != "" {
				t.Errorf("what was there before the first join took effect %s times", n)
			}
		})
	}
	t.Run("I6_a_pattern_that_matches_nothing_waits_for_a_topic", func(t *testing.T) {
		w := newWorld(t, 1)
		log := &lines{}
		w.start(count, func(c *kafka.Config) {
			c.Topics, c.TopicPattern, c.Logger = nil, w.topic+`\..*`, slog.New(slog.NewTextHandler(log, nil))
		})
		w.waitUntil("it is told", func() bool { return log.have("no topic matches the pattern") })
		w.publishTo(w.create(".eu"), "a")
		w.waitApplied("a")
		if log.have("does not work") {
			t.Error("the source counts as one that does not work")
		}
	})
	t.Run("I6_dead_letters_are_not_read_though_the_pattern_matches_their_topic", func(t *testing.T) {
		w := newWorld(t, 1)
		dead := w.create(".dead")
		w.publish(0, "bad")
		refuse := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if err := count(ctx, tx, m); err != nil || m.Identity.ID != "bad" {
				return err
			}
			return semel.Permanent(errors.New("refused"))
		}
		log := &lines{}
		p := w.start(refuse, w.pattern(func(c *kafka.Config) {
			c.Start, c.DeadLetters, c.Logger = kafka.Start{}, dead, slog.New(slog.NewTextHandler(log, nil))
		}), func(c *consumer.Config) { c.Retry.OnExhausted = consumer.ActionDeadLetter })
		w.waitCommitted()
		w.publishTo(w.create(".eu"), "a") // the source finds this topic later, together with the dead-letter topic
		w.waitApplied("a")
		if c := p.consumer.Counts(); c.Deliveries != 2 || c.DeadLettered != 1 {
			t.Errorf("%+v", c)
		}
		if !log.have("which is not read") {
			t.Error("the log does not say that it is not read")
		}
	})
	t.Run("I6_a_topic_that_is_deleted_is_let_go_and_the_others_go_on", func(t *testing.T) {
		w := newWorld(t, 1)
		gone := w.create(".eu")
		w.publishTo(gone, "a")
		log := &lines{}
		w.start(count, w.pattern(func(c *kafka.Config) { c.Start, c.Logger = kafka.Start{}, slog.New(slog.NewTextHandler(log, nil)) }))
		w.waitApplied("a")
		must.Get(w.admin.DeleteTopic(t.Context(), gone))(t)
		w.waitUntil("it is told", func() bool { return log.have("a topic was deleted") })
		w.publish(0, "b")
		w.waitApplied("b")
	})
}
