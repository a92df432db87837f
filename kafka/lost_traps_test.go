package kafka

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// passed lets retention pass a partition: its consumer has got to 10, 20
// records more were there, and all of them are gone.
func (w *world) passed() {
	w.t.Helper()
	w.publish(0, numbered("a", 1, 10)...)
	p := w.start(count, nil, nil)
	w.settles(time.Minute)
	_ = p.leave()
	w.publish(0, numbered("a", 11, 30)...)
	if err := w.cluster.DeleteRecords(theTopic, 0, 30); err != nil {
		w.t.Fatal(err)
	}
}

// logged collects what a process logs, the source as well as the consumer.
func (w *world) logged(change func(*Config)) *lockedBuffer {
	w.t.Helper()
	text := &lockedBuffer{}
	log := slog.New(slog.NewTextHandler(text, nil))
	w.start(count, func(c *Config) {
		c.Logger = log
		if change != nil {
			change(c)
		}
	}, func(c *settings) { c.Logger = log })
	return text
}

func TestRecordsThatAreLost(t *testing.T) {
	bubble(t, "I0_are_told_on_a_topic_where_nothing_comes_and_again_while_it_stands", func(t *testing.T) {
		w := newWorld(t, 1)
		w.passed()
		text := w.logged(nil)
		pass(2 * time.Minute)
		if n := strings.Count(text.String(), "offset 10 of group billing is no longer in the log"); n < 2 || n > 3 {
			t.Errorf("it is told %d times within two minutes:\n%.2000s", n, text.String())
		}
		w.publish(0, "new")
		pass(time.Minute)
		if at := w.committed(0); at != 10 || w.effect("new") != 0 {
			t.Errorf("records were skipped by themselves: the group's offset is %d", at)
		}
	})
	bubble(t, "I6_are_passed_over_loudly_where_the_policy_says_so", func(t *testing.T) {
		w := newWorld(t, 2)
		w.passed()
		w.publish(0, "new")
		text := w.logged(func(c *Config) { c.OnLostRecords = GoOn })
		w.settles(2 * time.Minute)
		w.once("new")
		for _, part := range []string{"records are lost", "partition=0", "from=10", "to=29", "offsets=20"} {
			if !strings.Contains(text.String(), part) {
				t.Errorf("the log does not say %q:\n%.3000s", part, text.String())
			}
		}
		w.publish(0, "newer")
		w.publish(1, "beside")
		w.settles(time.Minute)
		w.once("newer", "beside")
		if n := strings.Count(text.String(), "records are lost"); n != 1 {
			t.Errorf("the loss is told %d times", n)
		}
	})
}

// losesMore lets retention take what nobody has read yet of a partition that is
// read.
func (w *world) losesMore(partition int32) {
	w.t.Helper()
	unread := w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: theTopic, Partitions: []int32{partition}, Err: kerr.KafkaStorageError, Count: -1})
	w.publish(partition, "lost")
	if err := w.cluster.DeleteRecords(theTopic, partition, w.end(partition)); err != nil {
		w.t.Fatal(err)
	}
	unread.Remove()
}

func TestPartitionsThatLoseRecords(t *testing.T) {
	const soon = 5 * time.Second
	goOn := func(c *Config) { c.OnLostRecords = GoOn }
	bubble(t, "I6_one_after_the_other_go_on_at_once_each", func(t *testing.T) {
		w := newWorld(t, 6)
		for partition := range int32(6) {
			w.publish(partition, fmt.Sprint("a", partition))
		}
		text := w.logged(goOn)
		w.settles(time.Minute)
		for partition := range int32(6) {
			w.losesMore(partition)
			id := fmt.Sprint("b", partition)
			w.publish(partition, id)
			w.applied(soon, id)
		}
		w.settles(time.Minute)
		w.without("lost")
		if n := strings.Count(text.String(), "records are lost"); n != 6 {
			t.Errorf("the loss is told %d times", n)
		}
	})
	bubble(t, "I6_go_on_at_once_beside_a_topic_whose_deletion_hangs", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		w.create("orders.eu", "b")
		w.start(count, matching(`orders.*`, goOn), nil)
		w.applied(time.Minute, "a", "b")
		w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.eu", Err: kerr.UnknownTopicID, Count: -1})
		pass(3 * time.Minute)
		w.losesMore(0)
		w.publish(0, "c")
		w.applied(soon, "c")
		w.without("lost")
	})
}

func TestWhyALaneIsLostIsTold(t *testing.T) {
	bubble(t, "I0_the_group_took_nothing_away_when_it_could_not_be_reached", func(t *testing.T) {
		w := newWorld(t, 1)
		text := w.logged(nil)
		w.publish(0, "a")
		w.settles(time.Minute)
		fault := w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Err: kerr.GroupAuthorizationFailed, Count: -1})
		w.until(time.Minute, "the lane is lost", func() bool { return strings.Contains(text.String(), "lane lost") })
		if fault.Hits() == 0 || strings.Contains(text.String(), "took") || !strings.Contains(text.String(), "may not use group billing") {
			t.Errorf("%d faults, and the log says:\n%s", fault.Hits(), text.String())
		}
	})
	bubble(t, "I0_the_group_took_it_away_when_the_member_was_forgotten", func(t *testing.T) {
		w := newWorld(t, 1)
		text := w.logged(nil)
		w.publish(0, "a")
		w.settles(time.Minute)
		fault := w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Err: kerr.UnknownMemberID, Count: 1})
		w.until(time.Minute, "it is told", func() bool { return strings.Contains(text.String(), "the group took away what this member had") })
		if fault.Hits() == 0 {
			t.Error("nothing was forgotten")
		}
	})
}
