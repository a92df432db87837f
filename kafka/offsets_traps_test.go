package kafka

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
)

func TestPartitionsThatMoveKeys(t *testing.T) {
	bubble(t, "trap_38_copies_of_a_key_that_moved_to_another_partition_are_duplicates", func(t *testing.T) {
		w := newWorld(t, 1)
		p := w.start(count, nil, nil)
		w.publish(0, numbered("m", 1, 20)...)
		w.settles(time.Minute)
		if _, err := kadm.NewClient(w.producer).CreatePartitions(context.Background(), 3, theTopic); err != nil {
			t.Fatal(err)
		}
		w.producer = w.client()
		w.publish(3, numbered("m", 10, 40)...)
		w.settles(5 * time.Minute)
		w.once(numbered("m", 1, 40)...)
		if c := p.consumer.Counts(); c.Duplicates != 11 {
			t.Errorf("%+v", c)
		}
	})
	bubble(t, "trap_T35_what_stands_beside_an_offset_is_short_and_does_not_grow", func(t *testing.T) {
		w := newWorld(t, 5)
		w.start(count, func(c *Config) { c.Start = Start{Now: true} }, func(c *settings) { c.Lanes = consumer.LanesNone })
		pass(5 * time.Second)
		for p := range int32(5) {
			w.publish(p, numbered(fmt.Sprint("m", p), 1, 100)...)
		}
		w.settles(time.Minute)
		for p, c := range w.cluster.GroupInfo(theGroup).Commits[theTopic] {
			if want := "semel-start/5 " + stored.KeptWord(w.cluster.TopicInfo(theTopic).TopicID); c.Metadata != want || len(want) > 64 {
				t.Errorf("partition %d has %d bytes beside its offset: %.50s", p, len(c.Metadata), c.Metadata)
			}
		}
	})
}

func TestAnOffsetIsNobodysName(t *testing.T) {
	bubble(t, "trap_44_another_record_at_an_offset_that_was_applied_takes_effect", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "0", "1", "2", "3")
		first := w.start(count, nil, nil)
		w.settles(time.Minute)
		_ = first.leave()
		w.close()
		// The new leader lacks the last two, and other records stand there.
		elected := newWorld(t, 1, kfake.Ports(19093))
		elected.store = w.store
		elected.publish(0, "0", "1", "other 2", "other 3", "2")
		second := elected.start(count, nil, nil)
		elected.settles(time.Minute)
		elected.once("0", "1", "2", "3", "other 2", "other 3")
		if c := second.consumer.Counts(); c.Applied != 2 || c.Duplicates != 3 || c.Conflicts != 0 {
			t.Errorf("%+v", c)
		}
	})
	bubble(t, "trap_45_a_topic_that_is_deleted_and_made_again_under_load_is_read_from_its_beginning", func(t *testing.T) {
		w := newWorld(t, 2)
		p := w.start(count, nil, nil)
		w.publish(0, numbered("a", 1, 50)...)
		w.publish(1, numbered("b", 1, 50)...)
		w.until(time.Minute, "most of it is applied", func() bool { return w.effect("a0040") == 1 })
		w.settles(time.Minute)
		if err := w.cluster.DeleteTopic(theTopic); err != nil {
			t.Fatal(err)
		}
		pass(1500 * time.Millisecond)
		if err := w.cluster.CreateTopic(theTopic, 2, nil); err != nil {
			t.Fatal(err)
		}
		w.producer = w.client()
		w.publish(0, numbered("c", 1, 80)...)
		w.publish(1, numbered("b", 30, 60)...)
		w.settles(5 * time.Minute)
		w.once(numbered("a", 1, 50)...)
		w.once(numbered("b", 1, 60)...)
		w.once(numbered("c", 1, 80)...)
		if err := p.leave(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "trap_46_a_mirrored_cluster_brings_everything_at_other_offsets_and_nothing_happens", func(t *testing.T) {
		w := newWorld(t, 2)
		ids := numbered("m", 1, 100)
		w.publish(0, ids[:50]...)
		w.publish(1, ids[50:]...)
		first := w.start(count, nil, nil)
		w.settles(time.Minute)
		_ = first.leave()
		w.close()
		mirror := newWorld(t, 3, kfake.Ports(19093))
		mirror.store = w.store
		mirror.publish(2, ids...)
		mirror.publish(1, "new")
		second := mirror.start(count, nil, nil)
		mirror.settles(time.Minute)
		mirror.once(append(ids, "new")...)
		if c := second.consumer.Counts(); c.Applied != 1 || c.Duplicates != 100 {
			t.Errorf("%+v", c)
		}
	})
}
