//go:build unix

// Package takeover tests consumers that take over topics from other consumers, with a real broker and PostgreSQL. For
// each setting of start, exactly the right messages must be applied.
package takeover

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/sqlstore"
)

// formerly contains the committed offsets of another group: four messages of partition 0, seven of partition 1, and
// none of partition 2. Partition 0 has h0, h3, and so on.
var formerly = map[int32]int64{0: 4, 1: 7}

// unreadIDs returns the messages that the other group has not committed.
func unreadIDs() (all []string) {
	for n, id := range makeIDs(0, historic) {
		if int64(n/partitions) >= formerly[int32(n%partitions)] {
			all = append(all, id)
		}
	}
	return all
}

func TestATopicWithHistoryIsTakenOver(t *testing.T) {
	t.Run("I0_from_the_beginning_all_history_is_applied_once", func(t *testing.T) {
		w := newWorld(t)
		w.work(kafka.Start{})
		w.expectEffects(makeIDs(0, historic)...)
		w.publish(historic, historic+6, 0, partitions)
		if c := w.work(kafka.Start{}); c.Applied != 6 || c.Deliveries != 6 {
			t.Errorf("the second run: %+v", c)
		}
		w.expectEffects(makeIDs(0, historic+6)...)
	})
	t.Run("I0_now_applies_nothing_of_the_history", func(t *testing.T) {
		w := newWorld(t)
		if c := w.work(kafka.Start{Now: true}); c.Deliveries != 0 {
			t.Errorf("%+v", c)
		}
		w.expectEffects()
		w.publish(historic, historic+6, 0, partitions)
		w.work(kafka.Start{Now: true})
		w.expectEffects(makeIDs(historic, historic+6)...)
	})
	t.Run("I0_at_a_time_applies_what_is_as_old_or_younger", func(t *testing.T) {
		w := newWorld(t)
		w.work(kafka.Start{At: minute(10)})
		w.expectEffects(makeIDs(10, historic)...)
	})
	t.Run("I0_at_a_time_after_the_last_record_of_some_partitions", func(t *testing.T) {
		w := newWorld(t)
		w.work(kafka.Start{At: minute(historic - 1)})
		w.expectEffects(makeIDs(historic-1, historic)...)
		w.publish(0, 3, 0, partitions) // published late, with old timestamps
		w.work(kafka.Start{At: minute(historic - 1)})
		w.expectEffects(append(makeIDs(historic-1, historic), makeIDs(0, 3)...)...)
	})
	t.Run("I0_at_another_groups_offsets_and_at_the_beginning_where_it_has_none", func(t *testing.T) {
		w := newWorld(t)
		old := topics.Name()
		w.commit(old, formerly)
		w.work(kafka.Start{Group: old})
		w.expectEffects(unreadIDs()...)
	})
}

func TestWhereToBeginStaysThoughTheFirstOwnerDies(t *testing.T) {
	t.Run("I0_now_does_not_move_when_the_first_owner_is_killed_before_it_settles", func(t *testing.T) {
		w := newWorld(t)
		w.runAndKill(kafka.Start{Now: true}, func() { w.publish(historic, historic+6, 0, partitions) })
		w.expectEffects()
		w.publish(historic+6, historic+9, 0, partitions)
		w.work(kafka.Start{Now: true})
		w.expectEffects(makeIDs(historic, historic+9)...)
	})
	t.Run("I0_another_groups_offsets_do_not_move_it_though_that_group_goes_on", func(t *testing.T) {
		w := newWorld(t)
		old := topics.Name()
		w.commit(old, formerly)
		w.runAndKill(kafka.Start{Group: old}, func() {})
		w.expectEffects()
		w.commit(old, map[int32]int64{0: 10, 1: 10, 2: 10})
		w.work(kafka.Start{Group: old})
		w.expectEffects(unreadIDs()...)
	})
}

func TestPartitionsThatAreAddedAfterATakeOver(t *testing.T) {
	old := topics.Name()
	for name, start := range map[string]kafka.Start{
		"trap_37_are_read_from_their_beginning_after_now":                   {Now: true},
		"trap_37_are_read_from_their_beginning_after_a_time":                {At: minute(historic)},
		"trap_37_are_read_from_their_beginning_after_another_groups_offset": {Group: old},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.commit(old, map[int32]int64{0: 10, 1: 10, 2: 10})
			if c := w.work(start); c.Deliveries != 0 {
				t.Fatalf("the history is delivered: %+v", c)
			}
			w.addPartitions(partitions + 2)
			w.Cluster = topics.Open(t, w.order.Brokers) // a new connection, which knows the new partitions
			w.publish(0, 4, partitions, 2)              // with old timestamps
			w.work(start)
			w.expectEffects(makeIDs(0, 4)...)
		})
	}
}

func TestMarkersOfAnOldTable(t *testing.T) {
	t.Run("J2_a_table_of_processed_messages_is_seeded_and_the_rest_of_the_history_applied", func(t *testing.T) {
		w := newWorld(t)
		services.Exec(t, w.order.DSN, `create table processed (message_id text primary key, status text)`,
			`insert into processed select 'h' || n, 'done' from generate_series(0, 18) n`,
			`insert into processed values ('h25', 'done'), ('h26', 'failed'), ('elsewhere', 'done')`)
		pool := must.Get(pgxpool.New(t.Context(), w.order.DSN))(t)
		defer pool.Close()
		store := must.Get(pgxstore.New(pool, pgxstore.Options{}))(t)
		seeded, err := store.Seed(t.Context(), sqlstore.Seed{Consumer: "billing", Table: "processed", ID: "message_id", Where: "status = 'done'", Batch: 7})
		if err != nil || seeded.Written != 21 {
			t.Fatalf("seeded %+v: %v", seeded, err)
		}
		if c := w.work(kafka.Start{}); c.Applied != 10 || c.Duplicates != 20 {
			t.Errorf("%+v", c)
		}
		w.expectEffects(append(makeIDs(19, 25), makeIDs(26, historic)...)...)
	})
}
