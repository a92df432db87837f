//go:build unix

package dead

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/itest/worlds/workload"
	"github.com/semel-go/semel/kafka"
	"github.com/twmb/franz-go/pkg/kadm"
)

// fixture is a test database and topic, with a consumer in this process.
type fixture struct {
	*world
	consumer workload.Consumer
}

// run starts a consumer. The test stops it at the end.
func run(w *world) *fixture {
	w.t.Helper()
	source := must.Get(kafka.New(w.order.source()))(w.t)
	consumer, closePool, err := workload.Drivers()[1].Open(workload.Options{DSN: w.order.DSN, Connections: 3, Handler: handle, Config: policy(source)})
	must.OK(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		if err := consumer.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() {
		cancel()
		group.Wait()
		closePool()
	})
	return &fixture{w, consumer}
}

func (r *fixture) waitUntil(what string, condition func() bool) {
	r.t.Helper()
	if !services.Within(3*time.Minute, condition) {
		ready, why := r.consumer.Ready()
		r.t.Fatalf("after three minutes still not: %s; ready %v %s; %+v", what, ready, why, r.consumer.Counts())
	}
}

// waitNotReady waits until the consumer reports that it is not ready, with a reason that contains the text `why`.
func (r *fixture) waitNotReady(why string) {
	r.t.Helper()
	r.waitUntil("not ready, because "+why, func() bool {
		ready, text := r.consumer.Ready()
		return !ready && strings.Contains(text, why)
	})
}

func (r *fixture) green() {
	r.t.Helper()
	r.waitUntil("ready", func() bool { ready, _ := r.consumer.Ready(); return ready })
}

// expectUnsettled checks that the bad message is not acked, and that no dead letter, marker or row of this message
// exists.
func (r *fixture) expectUnsettled(bad testMessage) {
	r.t.Helper()
	if at := r.Committed(r.order.Group, r.order.Topic)[bad.record.Partition]; at > bad.record.Offset {
		r.t.Errorf("the message at %d has no dead letter and the group is at %d", bad.record.Offset, at)
	}
	if rows := r.readRows(); rows[place{bad.record.Partition, bad.record.Offset}] != (letter{}) {
		r.t.Errorf("the message has no dead letter and the rows %v", rows)
	}
}

// waitSettled waits until the group has committed all offsets, and checks the final state.
func (r *fixture) waitSettled() {
	r.t.Helper()
	r.waitUntil("the group is at the end", func() bool {
		committed := r.Committed(r.order.Group, r.order.Topic)
		for partition, end := range r.Ends(r.order.Topic) {
			if at := committed[partition]; at != end && end > 0 {
				return false
			}
		}
		return true
	})
	r.green()
	r.complete()
}

func (r *fixture) createDead() {
	r.t.Helper()
	must.Get(r.Admin.CreateTopic(r.t.Context(), 1, 1, nil, r.order.Dead))(r.t)
	r.t.Cleanup(func() { _, _ = r.Admin.DeleteTopic(context.Background(), r.order.Dead) })
}

func TestDeadLettersThatCannotBeWritten(t *testing.T) {
	t.Run("G3_without_a_topic_for_dead_letters_nothing_is_read_until_it_is_made", func(t *testing.T) {
		w := newWorld(t, services.Kafka(t))
		w.order.Dead = topics.Name()
		w.publish(24)
		r := run(w)
		r.waitNotReady("topic " + w.order.Dead + " does not exist")
		if len(w.readEffects()) > 0 {
			t.Error("messages had effects")
		}
		r.createDead()
		r.waitSettled()
	})
	t.Run("G3_when_the_topic_for_dead_letters_is_deleted_its_messages_wait_and_the_others_go_on", func(t *testing.T) {
		w := newWorld(t, services.Kafka(t))
		w.publish(2)
		r := run(w)
		r.waitSettled()
		w.deleteDead()
		w.publish(3) // the last of these three messages is bad
		r.waitNotReady("the topic does not exist; create it")
		r.expectUnsettled(w.newest)
		r.waitUntil("good messages of other partitions are applied", func() bool { return len(w.readEffects()) == 3 })
		r.createDead()
		r.waitSettled()
	})
	t.Run("G3_when_the_topic_takes_no_records_of_a_size_they_wait_until_it_does", func(t *testing.T) {
		w := newWorld(t, services.Kafka(t))
		limit := func(bytes string) {
			t.Helper()
			must.Get(w.Admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &bytes}}, w.order.Dead))(t)
		}
		limit("100")
		r := run(w)
		w.publish(2)
		r.waitNotReady("raise the topic's max.message.bytes")
		r.expectUnsettled(w.newest)
		limit("100000")
		r.waitSettled()
	})
}
