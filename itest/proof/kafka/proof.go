//go:build unix

// Package kafka proves that the messages of a topic take effect once, although the processes
// that apply them are killed, frozen, added and removed, and although broker and database are
// restarted. The package runs the binary as a fleet with private servers, and computes the
// ledger from the database and the broker.
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
	// Brokers is 1 or 3; with 3, each broker has a replica of every partition.
	Brokers int
	NextGen bool `flag:"have the members join with the protocol of KIP-848"`
	// AtFirst is the number of members at the start. Batch is the maximum number of messages
	// in a transaction.
	AtFirst, Batch int
	// Session is the session timeout of the group.
	Session time.Duration
	Kills   int  `flag:"kills in an open transaction"`
	Freezes int  `flag:"freezes beyond the session that are resumed"`
	ForGood bool `flag:"freeze one member for good"`
	// BrokerRestarts kill a member while the broker is down. BrokerFreezes are longer than the
	// other brokers wait. Of three brokers, the group's coordinator is chosen.
	BrokerRestarts   int `flag:"restarts of a broker, by SIGKILL"`
	BrokerFreezes    int `flag:"freezes of a broker, of three"`
	DatabaseRestarts int `flag:"restarts of PostgreSQL, every other time by SIGKILL"`
	Changes          int `flag:"members added, and as many removed"`
	// Inbox makes the members receive before their handlers run. Handlers fail now and then,
	// and ten messages are parked until they are retried.
	Inbox bool
	// Order makes the records versions of streams, in lanes by key; some come shuffled, late
	// or never. Handlers fail as with Inbox.
	Order bool
	// Keys, with Order, replaces versions by the order of keys behind a receipt: messages
	// behind a failed or parked one wait in the inbox.
	Keys bool
	// Refused is the minimum number of writes that must be rejected because of their token.
	Refused     int
	Redelivered int64 `flag:"redeliveries that there must be"`
	// Plant, if set, plants a fault: see Room.Plants.
	Plant string
	Seed  uint64
}

const (
	topic = "webhooks"
	group = "counter"
	// timeout is the timeout of handlers. The server's timeout for idle transactions is this
	// plus Semel's grace period.
	timeout = 5 * time.Second
	idle    = timeout + 10*time.Second
)

// run is a running Proof.
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

// Run runs the proof on private servers and returns the ledger; judge the ledger with Fault.
func (p Proof) Run(ctx context.Context, s proof.Stage) Ledger {
	l := Ledger{Events: p.Events, Brokers: p.Brokers, Planted: p.Plant, least: p}
	r := &run{Proof: p, ledger: &l, random: rand.New(rand.NewPCG(p.Seed, 5))}
	if p.Order {
		r.places = p.versions()
	}
	r.Fleet = proof.NewFleet(ctx, s, r.setup(), &l.Tally)
	defer r.Close()
	r.OnKafka(services.KafkaOptions{Nodes: p.Brokers, Settings: []string{
		// With the protocol of KIP-848 the broker configures the session timeout.
		fmt.Sprintf("group.consumer.session.timeout.ms=%d", p.Session.Milliseconds()), "group.consumer.heartbeat.interval.ms=2000",
	}})
	r.OnPostgres()
	r.writePolicies()
	if r.plain() {
		r.Exec(ctx, setup)
	}
	proof.Must(r.Kafka.Admin.CreateTopic(ctx, int32(r.Partitions), -1, nil, topic))
	r.prove(ctx)
	r.audit(ctx)
	return l
}

// prove runs the fleet during publishing and faults, and ends it when the group has committed
// everything.
func (r *run) prove(ctx context.Context) {
	for range r.AtFirst {
		r.add()
	}
	r.Watch = proof.WatchOffsets(r.Kafka, group, topic)
	r.Feed = r.publish(ctx)
	r.Spread(ctx, r.events(), r.Publish)
	r.Published(ctx)
	r.Fleet.Settled(ctx, patience)
	if r.Inbox || r.Order {
		r.workOff(ctx)
	}
	for _, m := range r.Members {
		r.end(m)
	}
	r.Over()
	r.ledger.Delivered = r.Delivered()
	if r.frozen != nil {
		r.ledger.Frozen = proof.Must(r.frozen.Stopped())
	}
}

// effects returns the number of effects, or 0 if it cannot be read.
func (r *run) effects() int64 {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	n, _ := r.Activity.Effects(ctx)
	return int64(n)
}

// patience is the time limit for the remaining messages after the last fault. The ledger
// reports what is not done by then.
const patience = 2 * time.Minute
