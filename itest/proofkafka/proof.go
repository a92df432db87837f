//go:build linux

// Package proofkafka proves that a topic's messages take effect once although
// the processes that apply them are killed, frozen, added and removed, and
// although the broker and the database are restarted under them. It runs the
// binary as a fleet against servers of its own and reads the ledger from the
// database and the broker.
package proofkafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/processes"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/webhooks"
)

// Proof is one run.
type Proof struct {
	Webhooks []webhooks.Webhook
	// Events are published, each with an identity of its own, and Duplicates
	// of them a second time, over at least Publish.
	Events, Duplicates int
	Publish            time.Duration
	Partitions         int
	// Brokers are 1 or 3; with 3, each partition has a copy on every one.
	Brokers int
	// NextGen has the members join with the protocol of KIP-848.
	NextGen bool
	// Binary is the built semel; Folder holds everything the members write.
	Binary, Folder string
	// Members run at the start. Batch is the most messages of a transaction.
	Members, Batch int
	// Session is after how long the group gives a silent member up.
	Session time.Duration
	// Kills is how often a member is killed in an open transaction, Freezes
	// how often one is frozen beyond its session and goes on; ForGood also
	// freezes one that never does.
	Kills, Freezes int
	ForGood        bool
	// BrokerRestarts are by SIGKILL, each with a member killed while the
	// broker is away; DatabaseRestarts every other time by SIGKILL. With each
	// of Changes a member is added, and later one ended. BrokerFreezes are
	// longer than the other brokers wait for one.
	BrokerRestarts, BrokerFreezes, DatabaseRestarts, Changes int
	// Redelivered is how many redeliveries there must be.
	Redelivered int64
	// Plant, when set, plants a fault: see Plants.
	Plant string
	Seed  uint64
	// Progress is told of each step.
	Progress Progress
}

// Plants are the faults that can be planted, each of which a proof must find.
// "natural" leaves the markers out, so that what comes twice has two effects.
// "settle-first" puts a plain loop in semel's place, which commits the offsets
// of what it fetched before it applies it; "settle-last" one that commits them
// afterwards.
func Plants() []string { return []string{"natural", "settle-first", "settle-last"} }

const (
	topic = "webhooks"
	group = "counter"
	// timeout is what a handler has. The server gives an idle transaction
	// that, and semel's grace of 10 s.
	timeout = 5 * time.Second
)

// run is a Proof under way.
type run struct {
	Proof
	kafka   *services.Cluster
	server  *services.Server
	db      *processes.Activity
	admin   *kadm.Client
	feed    *feed
	offsets *offsets
	random  *rand.Rand
	members []*member
	frozen  *member // for good
	started int     // members, for their names
	turn    int     // whose turn it is to suffer
	ledger  *Ledger
}

// Run proves on private servers and returns the ledger; judge it with Fault.
// An error says that the run itself failed.
func (p Proof) Run(ctx context.Context, t testing.TB) (Ledger, error) {
	ledger := Ledger{Events: p.Events, Brokers: p.Brokers, Planted: p.Plant}
	r := &run{Proof: p, ledger: &ledger, random: rand.New(rand.NewPCG(p.Seed, 5))}
	r.kafka = services.StartKafka(t, services.KafkaOptions{Nodes: p.Brokers, Settings: []string{
		// With the protocol of KIP-848 the session is the broker's setting.
		fmt.Sprintf("group.consumer.session.timeout.ms=%d", p.Session.Milliseconds()), "group.consumer.heartbeat.interval.ms=2000",
	}})
	r.server = services.StartPostgres(t, services.Options{})
	client, err := kgo.NewClient(kgo.SeedBrokers(r.kafka.Brokers()...))
	if err != nil {
		return ledger, err
	}
	r.admin = kadm.NewClient(client)
	defer r.admin.Close()
	if r.db, err = processes.OpenActivity(r.server.DSN()); err != nil {
		return ledger, err
	}
	defer r.db.Close()
	if err := r.prepare(ctx); err != nil {
		return ledger, err
	}
	defer r.killAll()
	began := time.Now()
	if err := r.prove(ctx); err != nil {
		return ledger, fmt.Errorf("%w; the logs are in %s", err, p.Folder)
	}
	ledger.Seconds = time.Since(began).Seconds()
	return ledger, r.audit(ctx)
}

func (r *run) prepare(ctx context.Context) error {
	if err := r.writePolicies(); err != nil {
		return err
	}
	if r.plain() {
		if _, err := r.db.DB.ExecContext(ctx, setup); err != nil {
			return err
		}
	}
	_, err := r.admin.CreateTopic(ctx, int32(r.Partitions), -1, nil, topic)
	return err
}

// prove runs the fleet while producers publish and things happen, and ends it
// when the group has settled everything.
func (r *run) prove(ctx context.Context) (err error) {
	for range r.Members {
		if err := r.add(); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if r.offsets, err = watchOffsets(r.kafka.Brokers()); err != nil {
		return err
	}
	defer r.offsets.stop()
	if r.feed, err = r.publish(ctx); err != nil {
		return err
	}
	defer r.feed.stop()
	r.Progress.Watch(r.feed.acknowledged, r.effects)
	err = r.happen(ctx)
	if err == nil {
		r.feed.rest()
		err = r.settle(ctx)
	}
	if err != nil {
		return err
	}
	return r.endAll()
}

// effects is how many effects stand, 0 where that can't be said.
func (r *run) effects() int64 {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	n, _ := r.db.Effects(ctx)
	return int64(n)
}

// patience is how long the group may take to settle what is left when nothing
// happens any more. Whether it has, the ledger says.
const patience = 2 * time.Minute

// settle waits until the group's offsets are at the end of each partition.
func (r *run) settle(ctx context.Context) error {
	if err := r.tendUntil(ctx, r.feed.over); err != nil {
		return err
	}
	r.say("all %d records are published", r.feed.acknowledged())
	most, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	looked := time.Time{}
	err := r.tendUntil(most, func() bool {
		if time.Since(looked) < 200*time.Millisecond {
			return false
		}
		looked = time.Now()
		behind, err := r.behind(most)
		return err == nil && behind == 0
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

// behind is how many records the group has not settled.
func (r *run) behind(ctx context.Context) (int64, error) {
	ends, err := r.ends(ctx)
	if err != nil {
		return 0, err
	}
	committed, err := r.admin.FetchOffsets(ctx, group)
	if err != nil {
		return 0, err
	}
	var behind int64
	for partition, end := range ends {
		at := int64(0)
		if o, known := committed.Lookup(topic, partition); known {
			at = max(o.At, 0)
		}
		behind += max(end-at, at-end)
	}
	return behind, nil
}

// ends are the offsets after the last record, by partition.
func (r *run) ends(ctx context.Context) (map[int32]int64, error) {
	listed, err := r.admin.ListEndOffsets(ctx, topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, err
	}
	ends := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return ends, nil
}

func (r *run) say(format string, args ...any) { r.Progress.Say(fmt.Sprintf(format, args...)) }
