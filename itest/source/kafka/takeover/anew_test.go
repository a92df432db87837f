//go:build unix

package takeover

import (
	"testing"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/kafka"
)

// recreateTopic deletes the topic and creates a topic of the same name with other records.
func (w *world) recreateTopic() {
	w.t.Helper()
	must.Get(w.Admin.DeleteTopic(w.t.Context(), w.order.Topic))(w.t)
	err := w.waitUntil("the topic can be made again", func() bool {
		made, err := w.Admin.CreateTopic(w.t.Context(), partitions, 1, nil, w.order.Topic)
		if err == nil {
			err = made.Err
		}
		if err != nil && !services.Passes(err) {
			w.t.Fatal(err)
		}
		if err == nil {
			services.AwaitTopic(w.t, w.order.Brokers, w.order.Topic, made.ID)
		}
		return err == nil
	})
	must.OK(w.t, err)
	if at := w.Committed(w.order.Group, w.order.Topic); len(at) > 0 {
		w.t.Fatalf("the brokers kept the group's offsets: %v", at)
	}
	w.Cluster = topics.Open(w.t, w.order.Brokers) // a new connection, which knows the new topic
}

func TestATopicThatIsCreatedAnewAfterATakeOver(t *testing.T) {
	old := topics.Name()
	for name, start := range map[string]kafka.Start{
		"trap_T92_is_read_from_its_beginning_after_now":                   {Now: true},
		"trap_T92_is_read_from_its_beginning_after_a_time":                {At: minute(historic)},
		"trap_T92_is_read_from_its_beginning_after_another_groups_offset": {Group: old},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.commit(old, map[int32]int64{0: 10, 1: 10, 2: 10})
			w.work(start)
			w.expectEffects()
			w.recreateTopic()
			w.publish(100, 400, 0, partitions)
			w.work(start)
			w.expectEffects(makeIDs(100, 400)...)
		})
	}
	t.Run("trap_T93_another_group_that_is_gone_is_not_missed", func(t *testing.T) {
		w := newWorld(t)
		former := topics.Name()
		w.commit(former, map[int32]int64{0: 10, 1: 10, 2: 10})
		w.work(kafka.Start{Group: former})
		must.Get(w.Admin.DeleteGroup(t.Context(), former))(t)
		w.addPartitions(partitions + 1)
		w.Cluster = topics.Open(t, w.order.Brokers)
		w.publish(100, 140, 0, partitions+1)
		w.work(kafka.Start{Group: former})
		w.expectEffects(makeIDs(100, 140)...)
	})
}
