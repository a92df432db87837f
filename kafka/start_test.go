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
		wants(t, read(t, config).take(1), "old")
	})
	t.Run("I0_now", func(t *testing.T) {
		config, c := setUp(t)
		config.Start.Now = true
		put(t, c, "orders", 0, "old", "old")
		r := read(t, config)
		r.begins(c, 2)
		put(t, c, "orders", 0, "new")
		wants(t, r.take(1), "new")
		if at := offset(t, c, "billing", "orders", 0); at != 2 {
			t.Fatalf("nothing is settled, and the place to begin is remembered as %d, not 2", at)
		}
		r.close() // before the first settlement
		put(t, c, "orders", 0, "newer")
		wants(t, read(t, config).take(2), "new", "newer")
	})
	t.Run("I0_at_a_time", func(t *testing.T) {
		config, c := setUp(t)
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		for i, v := range []string{"before", "at", "after"} {
			r := &kgo.Record{Topic: "orders", Value: []byte(v), Timestamp: at.Add(time.Duration(i-1) * time.Second)}
			if err := c.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		config.Start.At = at
		wants(t, read(t, config).take(2), "at", "after")
	})
	t.Run("I0_at_another_groups_offsets", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, "0", "1", "2")
		former := read(t, config)
		former.ack(former.take(3)[:2]...)
		config.Group, config.Start.Group = "billing-2", "billing"
		wants(t, read(t, config).take(1), "2")
		config.Group, config.Start.Group = "billing-3", "biling"
		if err := read(t, config).fails(); !strings.Contains(err.Error(), "Start.Group is biling, and there is no such group") {
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
		wants(t, read(t, config).take(1), "1")
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
				r.begins(c, 0)
			}
			put(t, c, "orders", 0, "0")
			r.ack(r.take(1)...)
			r.close()
			admin := kadm.NewClient(c)
			added, err := admin.UpdatePartitions(t.Context(), 2, "orders")
			if err == nil {
				err = added.Error()
			}
			if err != nil {
				t.Fatal(err)
			}
			fresh := newProducer(t, config.Brokers) // which knows of the new partition
			put(t, fresh, "orders", 1, "first")
			wants(t, read(t, config).take(1), "first")
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
		wants(t, read(t, config).take(1), "first")
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
