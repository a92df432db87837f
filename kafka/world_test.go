package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// bubble runs a subtest in virtual time.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// inWorld runs a subtest in virtual time, with a simulated cluster, store and network of its own.
func inWorld(t *testing.T, name string, partitions int32, f func(*testing.T, *world)) {
	bubble(t, name, func(t *testing.T) { f(t, newWorld(t, partitions)) })
}

// control answers requests of one kind with the response that the function f returns. If f returns nil, the brokers
// answer the request.
func (w *world) control(key kmsg.Key, f func(kmsg.Request) kmsg.Response) {
	w.cluster.ControlKey(int16(key), func(request kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		response := f(request)
		return response, nil, response != nil
	})
}

// pass waits in virtual time.
func pass(d time.Duration) { <-time.After(d) }

const (
	theTopic = "orders"
	theGroup = "billing"
)

// world is a cluster with a network in memory, a store, a producer, and the processes of one consumer.
type world struct {
	t        testing.TB
	network  kfake.VirtualNetwork
	cluster  *kfake.Cluster
	store    *memstore.Store
	producer *kgo.Client
	wires    []*wire
	latency  time.Duration // latency of the wire of the next process
	// The processes by client id, which identifies a process to the brokers.
	processes map[string]*process
}

func newWorld(t testing.TB, partitions int32, options ...kfake.Opt) *world {
	t.Helper()
	w := &world{t: t, store: memstore.New(), processes: map[string]*process{}}
	c, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.NumBrokers(1), kfake.Ports(19092), kfake.ListenFn(w.network.Listen), kfake.SeedTopics(partitions, theTopic),
	}, options...)...)
	must(t, err)
	w.cluster = c
	t.Cleanup(w.close)
	w.producer = w.client()
	return w
}

// close closes the cluster and all connections to the cluster.
func (w *world) close() {
	w.cluster.Close()
	for _, wire := range w.wires {
		wire.disconnect()
	}
}

// client returns a client that does not belong to the consumer, with a connection that is never cut.
func (w *world) client(options ...kgo.Opt) *kgo.Client {
	w.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(w.cluster.ListenAddrs()...), kgo.Dialer(w.network.DialContext),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableClientMetrics(),
	}, options...)...)
	must(w.t, err)
	w.t.Cleanup(c.Close)
	return c
}

// order returns a record for the message with the given id.
func order(partition int32, id string) *kgo.Record {
	return &kgo.Record{
		Topic: theTopic, Partition: partition, Key: []byte("key"), Value: []byte("order " + id),
		Headers: []kgo.RecordHeader{
			{Key: "ce_specversion", Value: []byte("1.0")}, {Key: "ce_type", Value: []byte("order")},
			{Key: "ce_id", Value: []byte(id)}, {Key: "ce_source", Value: []byte("shop")},
		},
	}
}

// publish appends messages with the given ids to a partition.
func (w *world) publish(partition int32, ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		w.produce(order(partition, id))
	}
}

func (w *world) produce(records ...*kgo.Record) {
	w.t.Helper()
	must(w.t, w.producer.ProduceSync(context.Background(), records...).FirstErr())
}

// numberedIDs returns ids that consist of a prefix and a number. The parameters first and last are the first and the
// last number.
func numberedIDs(prefix string, first, last int) []string {
	var all []string
	for n := first; n <= last; n++ {
		all = append(all, fmt.Sprintf("%s%04d", prefix, n))
	}
	return all
}

// process simulates one process of the consumer.
type process struct {
	wire       *wire
	source     *Source
	consumer   *consumer.Consumer[*memstore.Tx]
	stop       context.CancelFunc
	ended      chan error
	dead       atomic.Bool
	storeHangs atomic.Bool
}

type handler func(context.Context, *memstore.Tx, *semel.Message) error

// count is a handler that counts the effects of each id.
func count(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
	return tx.Add("effect "+m.Identity.ID, 1)
}

// settings has the configuration of a process and its injected faults.
type settings struct {
	consumer.Config
	plan faults.Plan
}

// start starts a process. The functions kafka and policy change the configuration of the process; each of them may be
// nil.
func (w *world) start(handle handler, kafka func(*Config), policy func(*settings)) *process {
	w.t.Helper()
	p := &process{wire: newWire(&w.network, w.latency), ended: make(chan error, 1)}
	w.wires = append(w.wires, p.wire)
	name := fmt.Sprint("process ", len(w.wires))
	w.processes[name] = p
	k := Config{Brokers: w.cluster.ListenAddrs(), Topics: []string{theTopic}, Group: theGroup, SessionTimeout: 10 * time.Second, ClientID: name}
	if kafka != nil {
		kafka(&k)
	}
	source, err := New(quiet(k))
	must(w.t, err)
	source.brokers.dial = p.wire.dial
	c := settings{
		Config: consumer.Config{Name: "billing", Source: source, Identity: identity.CloudEvents(), Logger: slog.New(slog.DiscardHandler)},
		plan:   faults.Plan{Seed: 1},
	}
	if policy != nil {
		policy(&c)
	}
	p.source = source
	if p.consumer, err = consumer.New(&killableStore{w.store, &p.dead, &p.storeHangs}, handle, c.Config, c.plan); err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() { p.ended <- p.consumer.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		p.wire.thaw()
		<-p.ended
		if err := source.Close(ctx); err != nil { // Run does not close the source if it returned an error at the start
			w.t.Error(err)
		}
		<-source.life.Done() // Run does not wait for a source that closes slowly
		source.brokers.close()
	})
	return p
}

// leave ends a process as a signal does, and returns the result of Run.
func (p *process) leave() error {
	p.stop()
	err := <-p.ended
	p.ended <- err
	return err
}

// startSettled starts a process, and waits until the offsets of all records are committed.
func (w *world) startSettled(kafka func(*Config)) *process {
	w.t.Helper()
	p := w.start(count, kafka, nil)
	w.waitCommitted(time.Minute)
	return p
}

// runOnce starts a process, waits until the offsets of all records are committed, and ends the process.
func (w *world) runOnce(kafka func(*Config)) {
	w.t.Helper()
	must(w.t, w.startSettled(kafka).leave())
}

func (p *process) firstLane() (l lane) {
	p.source.lanes.withAll(func(all []*lane) {
		if len(all) > 0 {
			l = *all[0]
		}
	})
	return l
}

// kill disconnects the process from the store and the brokers.
func (p *process) kill() {
	p.dead.Store(true)
	p.wire.disconnect()
	p.stop()
}

// killableStore is the store of a process that can be killed.
type killableStore struct {
	*memstore.Store
	dead *atomic.Bool
	// If the value hangs is true, the store does not answer requests for the beginning of a topic.
	hangs *atomic.Bool
}

func (m *killableStore) LoadPosition(ctx context.Context, consumer, src string) (source.Position, bool, error) {
	if m.hangs.Load() {
		<-ctx.Done()
		return source.Position{}, false, ctx.Err()
	}
	return m.Store.LoadPosition(ctx, consumer, src)
}

func (m *killableStore) AdvanceOffsets(ctx context.Context, consumer string, to []laneoffset.Advance) ([]laneoffset.LaneOffset, error) {
	if m.dead.Load() {
		return nil, errDead
	}
	return m.Store.AdvanceOffsets(ctx, consumer, to)
}

var errDead = errors.New("the process is dead")

func (m *killableStore) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	if m.dead.Load() {
		return nil, nil, errDead
	}
	b, v, err := m.Store.Begin(ctx, o, marks)
	if err != nil {
		return nil, nil, err
	}
	return &killableBatch{b, m.dead}, v, nil
}

type killableBatch struct {
	store.Batch[*memstore.Tx]
	dead *atomic.Bool
}

func (b *killableBatch) TxAborted() bool { return b.Batch.(store.TxStatus).TxAborted() }

func (*killableBatch) AbortCause() error { return nil }

func (b *killableBatch) ClassifyHandler(ctx context.Context, err error) store.Class {
	return b.Batch.(store.TxStatus).ClassifyHandler(ctx, err)
}

func (b *killableBatch) Commit(ctx context.Context, e store.Ending) store.Result {
	if b.dead.Load() {
		b.Batch.Rollback(ctx)
		return store.Result{Outcome: store.NotCommitted, Class: store.ClassDown, Culprit: store.NoCulprit, Err: errDead}
	}
	return b.Batch.Commit(ctx, e)
}

// effect returns the number of times that a message took effect.
func (w *world) effect(id string) int {
	w.t.Helper()
	v := w.store.Get("effect " + id)
	if v == nil {
		return 0
	}
	n, err := strconv.Atoi(string(v))
	must(w.t, err)
	return n
}

// expectOnce fails unless each given message took effect once.
func (w *world) expectOnce(ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		if n := w.effect(id); n != 1 {
			w.t.Errorf("%s took effect %d times", id, n)
		}
	}
}

// committedOffset returns the group's offset of a partition; -1 if the group has no offset.
func (w *world) committedOffset(partition int32) int64 {
	info := w.cluster.GroupInfo(theGroup)
	if info == nil {
		return -1
	}
	c, known := info.Commits[theTopic][partition]
	if !known {
		return -1
	}
	return c.Offset
}

func (w *world) end(partition int32) int64 {
	return w.cluster.PartitionInfo(theTopic, partition).HighWatermark
}

// waitCommitted waits until the group's offsets are at the ends of all partitions.
func (w *world) waitCommitted(within time.Duration) {
	w.t.Helper()
	rested := time.Now()
	w.waitUntil(within, "the group's offsets are at the ends of all partitions", func() bool {
		if time.Since(rested) > 2*time.Minute {
			rested = time.Now()
			w.bury()
		}
		for _, p := range w.cluster.PartitionInfos(theTopic) {
			if w.committedOffset(p.Partition) != p.HighWatermark && p.HighWatermark > 0 {
				return false
			}
		}
		return true
	})
}

// bury removes members from a group that does not become stable: the members of dead processes, and all members during
// a rebalance. Members of running processes join again. The method is needed because kfake differs from real brokers in
// two points. In kfake, a member that dies between the join and its first heartbeat stays forever; real brokers end its
// session. When a member joins again, kfake waits another rebalance timeout for the missing members; real brokers
// continue without them.
func (w *world) bury() {
	info := w.cluster.GroupInfo(theGroup)
	for _, m := range info.Members {
		if p := w.processes[m.ClientID]; info.State == "Stable" && (p == nil || !p.dead.Load()) {
			continue
		}
		leave := kmsg.NewPtrLeaveGroupRequest()
		member := kmsg.NewLeaveGroupRequestMember()
		leave.Group, leave.MemberID, member.MemberID = theGroup, m.MemberID, m.MemberID
		leave.Members = append(leave.Members, member)
		if _, err := leave.RequestWith(context.Background(), w.producer); err != nil {
			w.t.Fatal(err)
		}
	}
}

// waitUntil calls the function holds until it returns true, and fails if this takes longer than the parameter within.
func (w *world) waitUntil(within time.Duration, what string, holds func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(within)
	for !holds() {
		if time.Now().After(deadline) {
			w.t.Fatalf("within %v this did not become true: %s; %s", within, what, w.state())
		}
		pass(20 * time.Millisecond)
	}
}

func (w *world) state() string {
	text := ""
	for _, p := range w.cluster.PartitionInfos(theTopic) {
		text += fmt.Sprintf("partition %d: committed %d, end %d, stable %d; ", p.Partition, w.committedOffset(p.Partition), p.HighWatermark, p.LastStableOffset)
	}
	if info := w.cluster.GroupInfo(theGroup); info != nil {
		text += fmt.Sprintf("group %s, generation %d, members %d", info.State, info.Epoch, len(info.Members))
	}
	return text
}
