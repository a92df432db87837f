//go:build unix

// Package kafka proves that a topic's messages take effect once although
// the processes that apply them are killed, frozen, added and removed, and
// although the broker and the database are restarted under them. It runs the
// binary as a fleet against servers of its own and reads the ledger from the
// database and the broker.
package kafka

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/webhooks"
)

// Proof is one run.
type Proof struct {
	Webhooks   []webhooks.Webhook
	Events     int           `flag:"events, each with an identity of its own"`
	Duplicates int           `flag:"copies by producers"`
	Publish    time.Duration `flag:"over how long they are published, at least"`
	Partitions int
	// Brokers are 1 or 3; with 3, each partition has a copy on every one.
	Brokers int
	NextGen bool `flag:"have the members join with the protocol of KIP-848"`
	// AtFirst is how many members run at the start. Batch is the most messages of a transaction.
	AtFirst, Batch int
	// Session is after how long the group gives a silent member up.
	Session time.Duration
	Kills   int  `flag:"kills in an open transaction"`
	Freezes int  `flag:"freezes beyond the session that are resumed"`
	ForGood bool `flag:"freeze one member for good"`
	// A member is killed while a broker is away. BrokerFreezes are longer than the other
	// brokers wait for one. Of three brokers it is the one that coordinates the group.
	BrokerRestarts   int `flag:"restarts of a broker, by SIGKILL"`
	BrokerFreezes    int `flag:"freezes of a broker, of three"`
	DatabaseRestarts int `flag:"restarts of PostgreSQL, every other time by SIGKILL"`
	Changes          int `flag:"members added, and as many removed"`
	// Inbox has the members receive before their handlers run, which fail now and
	// then, and ten messages parked until somebody retries them.
	Inbox bool
	// Order has the records be versions of streams, some of which come shuffled, late or
	// never, in lanes by key; handlers fail as with Inbox.
	Order bool
	// Keys, with Order, has the records be in order, of keys, and kept behind a receipt:
	// what comes behind one that fails or is parked waits in the inbox.
	Keys bool
	// Refused is how many writes there must be that their token refuses.
	Refused     int
	Redelivered int64 `flag:"redeliveries that there must be"`
	// Plant, when set, plants a fault: see Room.Plants.
	Plant string
	Seed  uint64
}

const (
	topic = "webhooks"
	group = "counter"
	// timeout is what a handler has. The server gives an idle transaction
	// that, and semel's grace.
	timeout = 5 * time.Second
	idle    = timeout + 10*time.Second
)

// run is a Proof under way.
type run struct {
	Proof
	*proof.Fleet
	places []version // with Order: of events
	random *rand.Rand
	frozen *proof.Member // for good
	added  int           // members
	share  int           // which of the freezes it is
	ledger *Ledger
}

// Run proves on private servers and returns the ledger; judge it with Fault.
// An error says that the run itself failed.
func (p Proof) Run(ctx context.Context, s proof.Stage) (Ledger, error) {
	l := Ledger{Events: p.Events, Brokers: p.Brokers, Planted: p.Plant, least: p}
	r := &run{Proof: p, ledger: &l, random: rand.New(rand.NewPCG(p.Seed, 5))}
	if p.Order {
		r.places = p.versions()
	}
	var err error
	if r.Fleet, err = proof.NewFleet(ctx, s, r.setup(), &l.Tally); err != nil {
		return l, err
	}
	defer r.Close()
	r.OnKafka(services.KafkaOptions{Nodes: p.Brokers, Settings: []string{
		// With the protocol of KIP-848 the session is the broker's setting.
		fmt.Sprintf("group.consumer.session.timeout.ms=%d", p.Session.Milliseconds()), "group.consumer.heartbeat.interval.ms=2000",
	}})
	if err := r.OnPostgres(); err != nil {
		return l, err
	}
	if err := r.prepare(ctx); err != nil {
		return l, err
	}
	if err := r.prove(ctx); err != nil {
		return l, err
	}
	err = r.audit(ctx)
	return l, err
}

func (r *run) prepare(ctx context.Context) error {
	if err := r.writePolicies(); err != nil {
		return err
	}
	if r.plain() {
		if _, err := r.Activity.DB.ExecContext(ctx, setup); err != nil {
			return err
		}
	}
	_, err := r.Kafka.Admin.CreateTopic(ctx, int32(r.Partitions), -1, nil, topic)
	return err
}

// prove runs the fleet while producers publish and things happen, and ends it
// when the group has settled everything.
func (r *run) prove(ctx context.Context) (err error) {
	for range r.AtFirst {
		if err := r.add(); err != nil {
			return err
		}
	}
	r.Watch = proof.WatchOffsets(r.Kafka, group, topic)
	if r.Feed, err = r.publish(ctx); err != nil {
		return err
	}
	steps := []func(context.Context) error{
		func(ctx context.Context) error { return r.Spread(ctx, r.events(), r.Publish) }, r.Published,
		func(ctx context.Context) error { return r.Fleet.Settled(ctx, patience) },
	}
	if r.Inbox || r.Order {
		steps = append(steps, r.workOff)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return r.endAll()
}

// effects is how many effects stand, 0 where that can't be said.
func (r *run) effects() int64 {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	n, _ := r.Activity.Effects(ctx)
	return int64(n)
}

// patience is how long the group may take to settle what is left when nothing
// happens any more. Whether it has, the ledger says.
const patience = 2 * time.Minute
