package kafka

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/stored"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

// position is the name that a partition has in the store.
func (w *world) position(partition int32) string {
	return stored.PartitionName(theGroup, topicPartition{theTopic, partition}.lane(), w.cluster.TopicInfo(theTopic).TopicID)
}

// stands is how far the store says that a partition is done.
func (w *world) stands(partition int32) int64 {
	w.t.Helper()
	all, err := w.store.Offsets(context.Background(), "billing", []string{w.position(partition)})
	if err != nil {
		w.t.Fatal(err)
	}
	return all[0].Offset
}

// restore sets the store's position of a partition back, as a restored database has
// it.
func (w *world) restore(partition int32, at int64) {
	w.t.Helper()
	if err := w.store.SavePosition(context.Background(), "billing", w.position(partition), source.Position{Offset: at}); err != nil {
		w.t.Fatal(err)
	}
}

// refuses waits for a process to end because the store is behind, and holds its
// error to some words.
func (p *process) refuses(t *testing.T, says ...string) {
	t.Helper()
	err := p.ends(t)
	if !errors.Is(err, semel.ErrBehind) {
		t.Fatalf("it ends with: %v", err)
	}
	for _, words := range says {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("it does not say %q: %v", words, err)
		}
	}
}

func TestAStoreThatIsBehindItsGroup(t *testing.T) {
	bubble(t, "trap_T110_a_restored_store_is_noticed_at_the_start_with_the_figures", func(t *testing.T) {
		w := newWorld(t, 2)
		w.publish(0, numbered("a", 1, 20)...)
		p := w.start(count, nil, nil)
		w.settles(time.Minute)
		if err := p.leave(); err != nil {
			t.Fatal(err)
		}
		at := w.committed(0)
		if got := w.stands(0); got != at {
			t.Fatalf("the store stands at %d, the group at %d", got, at)
		}
		w.restore(0, 7)
		w.publish(0, "later")
		again := w.start(count, nil, nil)
		again.refuses(t, "partition 0: the store is at 7, the group at 20: 13 records", "semel positions reset", "semel positions accept")
		w.without("later")
		if w.committed(0) != at || w.stands(0) != 7 {
			t.Errorf("the group is at %d, the store at %d", w.committed(0), w.stands(0))
		}
	})
	bubble(t, "trap_T110_an_empty_store_is_noticed_where_the_group_was_told_after_another", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		p := w.start(count, nil, nil)
		w.settles(time.Minute)
		_ = p.leave()
		w.store = memstore.New()
		w.start(count, nil, nil).refuses(t, "the store knows nothing, the group is at 1")
	})
	bubble(t, "trap_105_a_store_that_fails_over_without_its_last_commits_stops_the_running_consumer", func(t *testing.T) {
		w := newWorld(t, 2)
		p := w.start(count, nil, nil)
		w.publish(0, "a", "b", "c")
		w.publish(1, "x")
		w.settles(time.Minute)
		w.restore(0, 1)
		w.publish(1, "y")
		w.settles(time.Minute) // whose position stands
		w.publish(0, "d")
		p.refuses(t, "partition 0: the store is at 1, the group at 3: 2 records")
		if w.committed(0) != 3 || w.stands(0) != 1 {
			t.Errorf("the group is at %d, the store at %d", w.committed(0), w.stands(0))
		}
	})
	bubble(t, "trap_105_nothing_is_committed_of_any_partition_once_one_is_behind", func(t *testing.T) {
		w := newWorld(t, 2)
		p := w.start(count, nil, nil)
		w.publish(0, "a", "b", "c")
		w.publish(1, "x")
		w.settles(time.Minute)
		w.restore(0, 1)
		w.produce(order(0, "d"), order(1, "y"))
		p.refuses(t, "partition 0")
		if w.committed(0) != 3 || w.committed(1) != w.stands(1) {
			t.Errorf("the group is at %d and %d, the store at %d in the latter", w.committed(0), w.committed(1), w.stands(1))
		}
	})
	bubble(t, "trap_T110_who_is_given_a_partition_looks_before_it_reads", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a", "b", "c")
		first := w.start(count, nil, nil)
		w.settles(time.Minute)
		second := w.start(count, nil, nil)
		pass(20 * time.Second)
		w.restore(0, 1)
		owner, other := first, second
		if len(second.source.lanes.all()) > 0 {
			owner, other = second, first
		}
		_ = owner.leave()
		w.publish(0, "d")
		other.refuses(t, "partition 0: the store is at 1, the group at 3")
		w.without("d")
	})
}
