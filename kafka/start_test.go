package kafka

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestAGroupWithoutOffsetsBeginsWhereItIsTold(t *testing.T) {
	t.Run("I0_at_the_beginning_unless_told_otherwise", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, "old")
		expectBodies(t, read(t, config).take(1), "old")
	})
	t.Run("I0_now", func(t *testing.T) {
		config, c := setUp(t)
		config.Start.Now = true
		put(t, c, "orders", 0, "old", "old")
		r := read(t, config)
		r.fetchUntilOffset(c, 2)
		put(t, c, "orders", 0, "new")
		expectBodies(t, r.take(1), "new")
		wantOffset(t, c, 0, 2)
		r.close() // before the first ack
		put(t, c, "orders", 0, "newer")
		expectBodies(t, read(t, config).take(2), "new", "newer")
	})
	t.Run("I0_at_a_time", func(t *testing.T) {
		config, c := setUp(t)
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		for i, v := range []string{"before", "at", "after"} {
			r := &kgo.Record{Topic: "orders", Value: []byte(v), Timestamp: at.Add(time.Duration(i-1) * time.Second)}
			must(t, c.ProduceSync(t.Context(), r).FirstErr())
		}
		config.Start.At = at
		expectBodies(t, read(t, config).take(2), "at", "after")
	})
	t.Run("I0_at_another_groups_offsets", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, "0", "1", "2")
		former := read(t, config)
		former.ack(former.take(3)[:2]...)
		config.Group, config.Start.Group = "billing-2", "billing"
		expectBodies(t, read(t, config).take(1), "2")
		config.Group, config.Start.Group = "billing-3", "biling"
		if err := read(t, config).fetchError(); !strings.Contains(err.Error(), "Start.Group is biling, and there is no such group") {
			t.Errorf("it says: %v", err)
		}
	})
	t.Run("an offset of the group counts more", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, "0", "1")
		r := read(t, config)
		r.ack(r.take(2)[0])
		r.close()
		config.Start.Now = true
		expectBodies(t, read(t, config).take(1), "1")
	})
}

func TestAPartitionThatIsAddedLaterIsReadFromItsBeginning(t *testing.T) {
	for name, start := range map[string]Start{
		"trap_37_without_a_start":               {},
		"trap_37_though_the_group_began_at_now": {Now: true},
	} {
		t.Run(name, func(t *testing.T) {
			config, c := setUp(t)
			config.Start = start
			r := read(t, config)
			if start.Now {
				r.fetchUntilOffset(c, 0)
			}
			put(t, c, "orders", 0, "0")
			r.ack(r.take(1)...)
			r.close()
			admin := kadm.NewClient(c)
			added, err := admin.UpdatePartitions(t.Context(), 2, "orders")
			if err == nil {
				err = added.Error()
			}
			must(t, err)
			fresh := newProducer(t, config.Brokers) // this producer knows the new partition
			put(t, fresh, "orders", 1, "first")
			expectBodies(t, read(t, config).take(1), "first")
		})
	}
}

func TestAGroupThatHasOffsetsBeginsWhereItHasNoneAtTheBeginning(t *testing.T) {
	t.Run("trap_37_a_start_is_not_for_a_group_that_reads_the_topic_already", func(t *testing.T) {
		c := cluster(t, kfake.SeedTopics(2, "orders"))
		config := Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing"}
		p := newProducer(t, c.ListenAddrs())
		put(t, p, "orders", 0, "0")
		r := read(t, config)
		r.ack(r.take(1)...)
		r.close()
		put(t, p, "orders", 1, "first")
		config.Start.Now = true
		expectBodies(t, read(t, config).take(1), "first")
	})
}

func TestWhereToBeginIsTriedAgainUntilItIsCommitted(t *testing.T) {
	c := cluster(t)
	p := newProducer(t, c.ListenAddrs())
	if _, err := kadm.NewClient(p).CreateTopic(t.Context(), 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	put(t, p, "orders", 0, "old")
	commits := refuse(c, kerr.RebalanceInProgress, 1)
	r := read(t, Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", Start: Start{Now: true}})
	stop := r.keepFetching(nil)
	defer stop()
	awaitOffset(t, p, "billing", "orders", 0, 1)
	if n := commits(); n < 2 {
		t.Errorf("there were %d commits", n)
	}
}

func TestWhereALaneBeginsIsKnownBeforeItIsRead(t *testing.T) {
	inWorld(t, "trap_T95_a_run_that_begins_now_and_finds_nothing_new_ends_idle", 1, func(t *testing.T, w *world) {
		w.publish(0, "history")
		p := w.start(count, startNow, whenIdle)
		must(t, p.waitEnd(t))
		w.expectNoEffect("history")
	})
	inWorld(t, "trap_T92_where_the_group_began_has_left_the_log_it_goes_on_at_its_beginning_and_says_so", 1, func(t *testing.T, w *world) {
		w.publish(0, "history")
		p := w.start(count, startNow, nil)
		w.waitForOffset(1)
		w.publish(0, numberedIDs("a", 1, 4)...)
		w.waitCommitted(time.Minute)
		_ = p.leave()
		w.forgetGroup()
		must(t, w.cluster.DeleteRecords(theTopic, 0, 5))
		w.publish(0, "new")
		text := w.startWithLog(startNow)
		w.waitCommitted(time.Minute)
		w.expectOnce("new")
		expectContains(t, text.String(), "records were removed from the log", "from=1", "to=4")
	})
}

func TestAnotherGroupIsAskedOnlyWhereOursHasNoOffset(t *testing.T) {
	inWorld(t, "trap_T93_a_group_with_offsets_goes_on_when_the_other_group_is_gone", 2, func(t *testing.T, w *world) {
		w.publish(0, "done", "a")
		w.publish(1, "b")
		w.commitFor("old", 1)
		start := func(c *Config) { c.Start.Group = "old" }
		w.runOnce(start)
		w.deleteGroup("old")
		w.publish(0, "a2")
		w.publish(1, "b2")
		w.startSettled(start)
		w.expectOnce("a", "b", "a2", "b2")
		w.expectNoEffect("done")
	})
	inWorld(t, "trap_T93_a_partition_that_has_never_begun_waits_by_name_and_the_others_go_on", 2, func(t *testing.T, w *world) {
		w.publish(0, "0", "1")
		w.publish(1, "never begun")
		// An earlier release leaves this state behind if it had to begin two partitions and committed an offset only
		// for partition 0.
		w.commitMarked(0, 1, "semel-start/2")
		var text lockedBuffer
		start := func(c *Config) { c.Start.Group, c.Logger = "old", logTo(&text) }
		p := w.start(count, start, nil)
		w.waitUntil(time.Minute, "the partition with an offset continues", func() bool { return w.effect("1") == 1 })
		w.publish(0, "2")
		w.waitUntil(time.Minute, "the partition with an offset continues", func() bool { return w.effect("2") == 1 })
		w.expectNoEffect("0", "never begun")
		expectContains(t, text.String(), "orders, partition 1", "there is no such group", "old")
		w.commitFor("old", 0) // the group "old" exists again, and still has no offset for partition 1
		w.waitCommitted(5 * time.Minute)
		w.expectOnce("never begun")
		w.expectNoEffect("0")
		if err := p.leave(); err != nil {
			t.Error(err)
		}
	})
}

func (w *world) deleteGroup(name string) {
	w.t.Helper()
	if _, err := kadm.NewClient(w.producer).DeleteGroup(w.t.Context(), name); err != nil {
		w.t.Fatal(err)
	}
}

// commitMarked commits an offset of the consumer's group with metadata.
func (w *world) commitMarked(partition int32, at int64, metadata string) {
	w.t.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: theTopic, Partition: partition, At: at, LeaderEpoch: -1, Metadata: metadata})
	must(w.t, kadm.NewClient(w.producer).CommitAllOffsets(w.t.Context(), theGroup, offsets))
}
