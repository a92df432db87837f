package kafka

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// startNow makes a process begin after the existing records.
func startNow(c *Config) { c.Start.Now = true }

// recreateTopic deletes the topic and creates a topic with the same name.
func (w *world) recreateTopic(partitions int32) {
	w.t.Helper()
	must(w.t, w.cluster.DeleteTopic(theTopic))
	pass(1500 * time.Millisecond)
	must(w.t, w.cluster.CreateTopic(theTopic, partitions, nil))
	w.producer = w.client()
}

// expectNoEffect fails if any of the given messages took effect.
func (w *world) expectNoEffect(ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		if n := w.effect(id); n != 0 {
			w.t.Errorf("%s took effect %d times, but was not to be read", id, n)
		}
	}
}

// waitForOffset waits until the group has the given offset for partition 0.
func (w *world) waitForOffset(offset int64) {
	w.t.Helper()
	w.waitUntil(time.Minute, "the group has begun", func() bool { return w.committedOffset(0) == offset })
}

func TestWhereAGroupBeganIsDecidedOnce(t *testing.T) {
	for name, how := range map[string]struct {
		start Start
		down  bool
	}{
		"trap_T92_start_now_is_not_for_a_topic_that_is_created_anew_while_the_process_is_down": {Start{Now: true}, true},
		"trap_T92_start_now_is_not_for_a_topic_that_is_created_anew_while_the_process_runs":    {Start{Now: true}, false},
		"trap_T92_nor_is_a_time": {Start{At: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}, true},
	} {
		inWorld(t, name, 1, func(t *testing.T, w *world) {
			w.publish(0, "history")
			start := func(c *Config) { c.Start = how.start }
			p := w.start(count, start, nil)
			w.waitForOffset(1)
			w.publish(0, "before")
			w.waitCommitted(time.Minute)
			w.expectOnce("before")
			if how.down {
				_ = p.leave()
			}
			w.recreateTopic(1)
			w.publish(0, numberedIDs("new", 1, 300)...)
			if how.down {
				w.start(count, start, nil)
			}
			w.waitCommitted(5 * time.Minute)
			w.expectOnce(numberedIDs("new", 1, 300)...)
			w.expectNoEffect("history")
		})
	}
	inWorld(t, "trap_T92_nor_is_another_groups_offset", 1, func(t *testing.T, w *world) {
		w.publish(0, "done", "left")
		w.commitFor("old", 1)
		start := func(c *Config) { c.Start.Group = "old" }
		w.runOnce(start)
		w.recreateTopic(1)
		w.publish(0, numberedIDs("new", 1, 20)...)
		w.commitFor("old", 20)
		w.startSettled(start)
		w.expectOnce(append(numberedIDs("new", 1, 20), "left")...)
		w.expectNoEffect("done")
	})
	inWorld(t, "trap_T92_a_partition_that_is_added_while_the_process_is_down_is_read_from_its_beginning", 1, func(t *testing.T, w *world) {
		w.publish(0, "history")
		p := w.start(count, startNow, nil)
		w.waitForOffset(1)
		_ = p.leave()
		w.forgetGroup() // the metadata of the group's offsets is deleted, too
		if _, err := kadm.NewClient(w.producer).CreatePartitions(context.Background(), 2, theTopic); err != nil {
			t.Fatal(err)
		}
		w.producer = w.client()
		w.publish(1, numberedIDs("b", 1, 20)...)
		w.startSettled(startNow)
		w.expectOnce(numberedIDs("b", 1, 20)...)
		w.expectNoEffect("history")
	})
	inWorld(t, "trap_T92_when_the_groups_offsets_expire_it_begins_where_it_began", 1, func(t *testing.T, w *world) {
		w.publish(0, "history")
		p := w.start(count, startNow, nil)
		w.waitForOffset(1)
		w.publish(0, "a")
		w.waitCommitted(time.Minute)
		_ = p.leave()
		w.publish(0, "while it was away")
		w.forgetGroup()
		second := w.startSettled(startNow)
		w.expectOnce("a", "while it was away")
		w.expectNoEffect("history")
		if c := second.consumer.Counts(); c.Duplicates != 1 || c.Applied != 1 {
			t.Errorf("%+v", c)
		}
	})
}

// forgetGroup deletes the group with its offsets, as brokers do when a group was empty for a long time.
func (w *world) forgetGroup() {
	w.t.Helper()
	if _, err := kadm.NewClient(w.producer).DeleteGroup(context.Background(), theGroup); err != nil {
		w.t.Fatal(err)
	}
	if at := w.committedOffset(0); at != -1 {
		w.t.Fatalf("the group still has its offset %d", at)
	}
}

// commitFor commits an offset of partition 0 for a group without members.
func (w *world) commitFor(group string, at int64) {
	w.t.Helper()
	var offsets kadm.Offsets
	offsets.AddOffset(theTopic, 0, at, -1)
	must(w.t, kadm.NewClient(w.producer).CommitAllOffsets(context.Background(), group, offsets))
}

// first is a store that simulates a race: after this process has read a position, another process writes the same
// position first.
type first struct {
	*memstore.Store
	position source.Position
}

func (f *first) KeepPosition(ctx context.Context, consumer, lane string, p source.Position) (source.Position, error) {
	if _, err := f.Store.KeepPosition(ctx, consumer, lane, f.position); err != nil {
		return source.Position{}, err
	}
	return f.Store.KeepPosition(ctx, consumer, lane, p)
}

// fetchUntilOffset fetches until the group has the given offset for partition 0. The test fails if a delivery arrives.
func (r *reader) fetchUntilOffset(c *kgo.Client, offset int64) {
	r.t.Helper()
	stop := r.keepFetching(func(got []source.Delivery) {
		if len(got) > 0 {
			r.t.Errorf("came: %s", formatBodies(got))
		}
	})
	defer stop()
	awaitOffset(r.t, c, r.config.Group, "orders", 0, offset)
}

func TestProcessesAgreeOnWhereTheGroupBegan(t *testing.T) {
	t.Run("trap_T92_of_two_processes_that_begin_at_once_one_decides", func(t *testing.T) {
		config, c := setUp(t)
		config.Start.Now = true
		put(t, c, "orders", 0, "history", "since the other began")
		s := read(t, config)
		topics, err := kadm.NewClient(c).ListTopics(t.Context(), "orders")
		must(t, err)
		others := stored.Beginning{TopicID: topics["orders"].ID, Starts: []int64{1}}
		s.Info().Positions("billing", &first{memstore.New(), others.Position()})
		expectBodies(t, s.take(1), "since the other began")
	})
	t.Run("trap_T92_each_consumer_of_a_store_and_each_group_begins_for_itself", func(t *testing.T) {
		config, c := setUp(t)
		config.Start.Now = true
		store := memstore.New()
		put(t, c, "orders", 0, "0")
		begin := func(consumer, group string, want int64) {
			t.Helper()
			config.Group = group
			r := read(t, config)
			r.Info().Positions(consumer, store)
			r.fetchUntilOffset(c, want)
		}
		begin("billing", "billing", 1)
		put(t, c, "orders", 0, "1")
		begin("audit", "audit", 2)
		begin("billing", "billing-2", 2)
	})
	t.Run("trap_T92_another_database_in_the_same_group_goes_on_and_does_not_begin", func(t *testing.T) {
		c := cluster(t, kfake.SeedTopics(2, "orders"))
		config := Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", Start: Start{Now: true}}
		p := newProducer(t, config.Brokers)
		put(t, p, "orders", 0, "history")
		former := read(t, config)
		former.Info().Positions("billing", anotherStore())
		former.fetchUntilOffset(p, 1)
		former.close()
		added, err := kadm.NewClient(p).UpdatePartitions(t.Context(), 3, "orders")
		if err == nil {
			err = added.Error()
		}
		must(t, err)
		put(t, newProducer(t, config.Brokers), "orders", 2, "new")
		latter := read(t, config)
		latter.Info().Positions("billing", anotherStore())
		expectBodies(t, latter.take(1), "new")
	})
}

func TestAStartNeedsAMemory(t *testing.T) {
	t.Run("trap_T92_without_a_store_for_positions_a_start_is_refused", func(t *testing.T) {
		config, _ := setUp(t)
		config.Start.Now = true
		s, err := New(quiet(config))
		must(t, err)
		defer func() { _ = s.Close(t.Context()) }()
		s.Lanes(nil)
		if _, err := s.Fetch(t.Context(), wide); err == nil || !strings.Contains(err.Error(), "Positions with the consumer's store") {
			t.Errorf("it says: %v", err)
		}
	})
	t.Run("trap_T92_while_the_store_is_away_nothing_is_read", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, "0")
		s := read(t, config)
		s.Info().Positions("billing", awayStore{})
		if err := s.fetchError(); !errors.Is(err, errAway) || !strings.Contains(err.Error(), "topic orders") {
			t.Errorf("it says: %v", err)
		}
	})
	t.Run("trap_T92_a_beginning_that_cannot_be_read_is_no_beginning", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, "0")
		store := memstore.New()
		must(t, store.SavePosition(t.Context(), "billing", stored.Name("billing", "orders"), source.Position{Check: []byte{9, 9}}))
		s := read(t, config)
		s.Info().Positions("billing", store)
		if err := s.fetchError(); !strings.Contains(err.Error(), "newer release") {
			t.Errorf("it says: %v", err)
		}
	})
}

var errAway = errors.New("the store is unreachable")

// awayStore is a store that cannot be reached.
type awayStore struct{ *memstore.Store }

func (awayStore) LoadPosition(context.Context, string, string) (source.Position, bool, error) {
	return source.Position{}, false, errAway
}
