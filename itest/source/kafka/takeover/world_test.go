//go:build unix

package takeover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/itest/worlds/workload"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The topic's messages before the consumer starts: h0 to h29, one minute apart, in three partitions in turn.
const (
	historic   = 30
	partitions = 3
)

var base = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// minute returns the timestamp of the n-th message.
func minute(n int) time.Time { return base.Add(time.Duration(n) * time.Minute) }

// world is a topic with earlier messages, and a database in which no message is applied yet.
type world struct {
	*topics.Cluster
	t     *testing.T
	order order
}

// order contains the settings with which a child process runs its consumer.
type order struct {
	Brokers           []string
	Topic, Group, DSN string
	Start             kafka.Start
}

func newWorld(t *testing.T) *world {
	t.Helper()
	brokers := services.Kafka(t)
	w := &world{t: t, Cluster: topics.Open(t, brokers)}
	w.order = order{Brokers: brokers, Topic: services.Topic(t, brokers, partitions), Group: topics.Name(), DSN: services.Postgres(t)}
	must.OK(t, workload.Migrate(t.Context(), w.order.DSN))
	w.publish(0, historic, 0, partitions)
	return w
}

// makeIDs returns the ids of the messages from first to last-1.
func makeIDs(first, last int) (all []string) {
	for n := first; n < last; n++ {
		all = append(all, fmt.Sprint("h", n))
	}
	return all
}

// publish writes the messages from first to last-1 to several partitions in turn. The parameter partition is the first
// partition, and count is the number of partitions.
func (w *world) publish(first, last int, partition, count int32) {
	w.t.Helper()
	var records []*kgo.Record
	for i, id := range makeIDs(first, last) {
		r := topics.Record(w.order.Topic, partition+int32(i)%count, id, `{}`)
		r.Timestamp = minute(first + i)
		records = append(records, r)
	}
	w.Produce(records...)
}

func (o order) source() (source.Source, error) {
	return kafka.New(kafka.Config{Brokers: o.Brokers, Topics: []string{o.Topic}, Group: o.Group, Start: o.Start,
		Instance: "mover"}) // with the same instance id, the next process need not wait until the dead process's session ends
}

func (o order) open(change func(*workload.Options)) (workload.Consumer, func(), error) {
	source, err := o.source()
	if err != nil {
		return nil, nil, err
	}
	c := workload.Config(source)
	c.Workers, c.Batch.MaxSize = 2, 5
	options := workload.Options{DSN: o.DSN, Connections: 3, Handler: workload.Effect("here"), Config: c}
	if change != nil {
		change(&options)
	}
	return workload.Drivers()[1].Open(options)
}

// work runs a consumer until its group has committed all offsets, and returns its counts.
func (w *world) work(start kafka.Start) semel.Counts {
	w.t.Helper()
	o := w.order
	o.Start = start
	consumer, closePool, err := o.open(nil)
	must.OK(w.t, err)
	defer closePool()
	ctx, cancel := context.WithCancel(w.t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { err = consumer.Run(ctx) })
	reached := w.reach()
	cancel()
	ended.Wait()
	if err := errors.Join(err, reached); err != nil {
		w.t.Fatalf("%v; %+v", err, consumer.Counts())
	}
	return consumer.Counts()
}

// reach waits until the group has committed the last offset of each partition that has messages.
func (w *world) reach() error {
	return w.waitUntil("the group is at the end of the topic", func() bool {
		committed := w.Committed(w.order.Group, w.order.Topic)
		for partition, end := range w.Ends(w.order.Topic) {
			if at := committed[partition]; at != end {
				return false
			}
		}
		return true
	})
}

func (w *world) waitUntil(what string, condition func() bool) error {
	if !services.Within(3*time.Minute, condition) {
		return fmt.Errorf("after three minutes still not: %s; the group is at %v", what, w.Committed(w.order.Group, w.order.Topic))
	}
	return nil
}

// commit sets the offsets of a group that has no members.
func (w *world) commit(group string, offsets map[int32]int64) {
	w.t.Helper()
	all := kadm.Offsets{}
	for partition, at := range offsets {
		all.AddOffset(w.order.Topic, partition, at, -1)
	}
	must.OK(w.t, w.Admin.CommitAllOffsets(w.t.Context(), group, all))
}

func (w *world) addPartitions(to int) {
	w.t.Helper()
	changed, err := w.Admin.UpdatePartitions(w.t.Context(), to, w.order.Topic)
	if err == nil {
		err = changed.Error()
	}
	if err == nil { // brokers learn of new partitions from the controller after a delay
		err = w.waitUntil("the topic has its partitions", func() bool { return len(w.Ends(w.order.Topic)) == to })
	}
	must.OK(w.t, err)
}

// expectEffects checks that exactly the given messages took effect, each message once.
func (w *world) expectEffects(want ...string) {
	w.t.Helper()
	conn := must.Get(pgx.Connect(w.t.Context(), w.order.DSN))(w.t)
	defer func() { _ = conn.Close(w.t.Context()) }()
	rows := must.Get(conn.Query(w.t.Context(), `select id from effects`))(w.t)
	got := must.Get(pgx.CollectRows(rows, pgx.RowTo[string]))(w.t)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Errorf("there are %d effects: %v\nwant %d: %v", len(got), got, len(want), want)
	}
}
