//go:build unix

// Package kafka is a fault test: it checks that the messages of a topic take effect once, although the processes that
// apply the messages are killed, frozen, added and removed, and although the broker and the database are restarted. The
// test runs the binary as a fleet of processes with servers of its own, and computes the ledger from the database and
// the broker.
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

// Proof is the configuration of one run of the fault test.
type Proof struct {
	Webhooks   []webhooks.Webhook
	Events     int           `flag:"events, each with an identity of its own"`
	Duplicates int           `flag:"copies that producers send"`
	Publish    time.Duration `flag:"minimum duration of publishing"`
	Partitions int
	// Brokers is 1 or 3. With three brokers each broker has a replica of every partition.
	Brokers int
	NextGen bool `flag:"use the group protocol of KIP-848"`
	// AtFirst is the number of members at the start. Batch is the maximum number of messages in a
	// transaction.
	AtFirst, Batch int
	// Session is the session timeout of the group.
	Session time.Duration
	Kills   int  `flag:"kills in an open transaction"`
	Freezes int  `flag:"freezes longer than the session timeout, after which the member continues"`
	ForGood bool `flag:"freeze one member until the end"`
	// BrokerRestarts also kill a member while the broker is down. BrokerFreezes last longer than the other brokers wait
	// for the frozen broker. With three brokers, restarts and freezes hit the group's coordinator.
	BrokerRestarts   int `flag:"restarts of a broker, by SIGKILL"`
	BrokerFreezes    int `flag:"freezes of one of three brokers"`
	DatabaseRestarts int `flag:"restarts of PostgreSQL, half of them by SIGKILL"`
	Changes          int `flag:"members added, and the same number removed"`
	// Inbox makes the members store messages in the inbox before their handlers run. Handlers fail now and then. Ten
	// messages are parked until the fault test retries them.
	Inbox bool
	// Order makes the records versions of streams, processed in lanes by key. Some versions arrive out of order, late
	// or never. Handlers fail as with Inbox.
	Order bool
	// Keys, together with Order, tests the order of message keys instead of versions. Messages are
	// acknowledged after receipt, and messages behind a failed or parked message wait in the inbox.
	Keys bool
	// Refused is the minimum number of writes that the server must reject because of their token.
	Refused     int
	Redelivered int64 `flag:"minimum number of redeliveries"`
	// Plant is the name of a fault that the run must detect, or "": see Room.Plants.
	Plant string
	Seed  uint64
}

const (
	topic = "webhooks"
	group = proof.Consumer
	// The timeout of handlers. The server's timeout for idle transactions is the timeout of handlers plus Semel's grace
	// period.
	timeout = 5 * time.Second
	idle    = timeout + 10*time.Second
)

// run is the state of a running Proof.
type run struct {
	Proof
	*proof.Fleet
	places []version // with Order: stream and number of each event
	random *rand.Rand
	frozen *proof.Member // the member that stays frozen, or nil
	added  int           // number of members added so far
	share  int           // number of freezes so far
	ledger *Ledger
}

// Run runs the fault test on servers of its own and returns the ledger; see Ledger.Wrong and Ledger.Fault.
func (p Proof) Run(ctx context.Context, s proof.Stage) Ledger {
	l := Ledger{Events: p.Events, Brokers: p.Brokers, Planted: p.Plant, least: p}
	r := &run{Proof: p, ledger: &l, random: rand.New(rand.NewPCG(p.Seed, 5))}
	if p.Order {
		r.places = p.makeVersions()
	}
	r.Fleet = proof.NewFleet(ctx, s, r.setup(), &l.Tally)
	defer r.Close()
	r.OnKafka(services.KafkaOptions{Nodes: p.Brokers, Settings: []string{
		// With the protocol of KIP-848, the session timeout is a setting of the broker.
		fmt.Sprintf("group.consumer.session.timeout.ms=%d", p.Session.Milliseconds()), "group.consumer.heartbeat.interval.ms=2000",
	}})
	r.OnPostgres(services.Options{})
	r.writePolicies()
	if r.plain() {
		r.Exec(ctx, setup)
	}
	proof.Must(r.Kafka.Admin.CreateTopic(ctx, int32(r.Partitions), -1, nil, topic))
	r.prove(ctx)
	r.audit(ctx)
	return l
}

// prove runs the fleet while it publishes and injects faults. prove stops the fleet when the group has
// committed all offsets.
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

// countEffects returns the number of effects, or 0 if the database cannot be read.
func (r *run) countEffects() int64 {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	n, _ := r.Activity.Effects(ctx)
	return int64(n)
}

// The time for which the fault test waits for the remaining messages after the last fault. The ledger reports messages
// that are not processed in time.
const patience = 2 * time.Minute
