package kafka

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

func TestAnotherGroupIsAskedOnlyWhereOursHasNoOffset(t *testing.T) {
	bubble(t, "trap_T93_a_group_with_offsets_goes_on_when_the_other_group_is_gone", func(t *testing.T) {
		w := newWorld(t, 2)
		w.publish(0, "done", "a")
		w.publish(1, "b")
		w.commitFor("old", 1)
		start := func(c *Config) { c.Start.Group = "old" }
		p := w.start(count, start, nil)
		w.settles(time.Minute)
		_ = p.leave()
		w.deleteGroup("old")
		w.publish(0, "a2")
		w.publish(1, "b2")
		w.start(count, start, nil)
		w.settles(time.Minute)
		w.once("a", "b", "a2", "b2")
		w.without("done")
	})
	bubble(t, "trap_T93_a_partition_that_has_never_begun_waits_by_name_and_the_others_go_on", func(t *testing.T) {
		w := newWorld(t, 2)
		w.publish(0, "0", "1")
		w.publish(1, "never begun")
		// An earlier release was to begin both partitions and did so with one.
		w.commitMarked(0, 1, "semel-start/2")
		var text lockedBuffer
		start := func(c *Config) { c.Start.Group, c.Logger = "old", slog.New(slog.NewTextHandler(&text, nil)) }
		p := w.start(count, start, nil)
		w.until(time.Minute, "the partition with an offset goes on", func() bool { return w.effect("1") == 1 })
		w.publish(0, "2")
		w.until(time.Minute, "the partition with an offset goes on", func() bool { return w.effect("2") == 1 })
		w.without("0", "never begun")
		for _, part := range []string{"orders, partition 1", "there is no such group", "old"} {
			if !strings.Contains(text.String(), part) {
				t.Errorf("the log does not say %q:\n%s", part, text.String())
			}
		}
		w.commitFor("old", 0) // it is back, and has no offset of partition 1
		w.settles(5 * time.Minute)
		w.once("never begun")
		w.without("0")
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

// commitMarked commits an offset with metadata for the consumer's group.
func (w *world) commitMarked(partition int32, at int64, metadata string) {
	w.t.Helper()
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: theTopic, Partition: partition, At: at, LeaderEpoch: -1, Metadata: metadata})
	if err := kadm.NewClient(w.producer).CommitAllOffsets(w.t.Context(), theGroup, offsets); err != nil {
		w.t.Fatal(err)
	}
}
