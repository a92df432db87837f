//go:build unix

// Package chaos has two fault tests of the same world: three processes consume a topic of Kafka into PostgreSQL, with
// one consumer that has the strategy marker and one that has the strategy inbox.
//
// Chaos injects faults in a random order: kills, freezes, rebalances, network cuts, restarts and a failover. Each
// message must take effect once for each consumer.
//
// Soak injects no fault. Soak watches the memory, goroutines and connections of the processes and the sizes of Semel's
// tables, while the reaper removes old markers. None of them may grow in the second half of the run.
package chaos

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/webhooks"
)

// Proof is the configuration of one run of either fault test.
type Proof struct {
	For  time.Duration `flag:"how long messages are published"`
	Rate int           `flag:"messages a second, each with an identity of its own"`
	// Every is the time between two samples of a soak.
	Every time.Duration
	// Plant is the name of a fault that the run must detect, or "": see the functions Chaos and Soak.
	Plant string
	Seed  uint64
}

const (
	topic      = "webhooks"
	partitions = 6
	members    = 3
	// The second consumer, which stores messages before it processes them.
	receiver = "receiver"
	// The session timeout of the groups.
	session = 6 * time.Second
	// The time for which the fault test waits for the remaining messages. The ledger reports messages that are not
	// processed in time.
	patience   = 3 * time.Minute
	policyFile = "semel.yaml"
)

// run is the state of a running Proof.
type run struct {
	Proof
	*proof.Fleet
	received  *proof.Watch // the offsets of the receiver; Fleet.Watch has those of the other consumer
	addresses map[*proof.Member]string
	hooks     []webhooks.Webhook
	random    *rand.Rand
	ledger    Ledger
}

// RunChaos runs the fault test with all faults and returns the ledger; see Ledger.Wrong and Ledger.Fault.
func (p Proof) RunChaos(ctx context.Context, s proof.Stage) Ledger {
	setup := proof.Setup + services.NewReportedDisk("effects").Setup
	r := p.newRun(ctx, s, setup)
	defer r.close()
	r.OnKafka(services.KafkaOptions{})
	r.OnPostgres(services.Options{Standby: true})
	r.Proxy = pgproxy.Start(r.T, r.Server.DSN())
	r.writePolicy()
	if r.plain() {
		r.Exec(ctx, setup)
	}
	proof.Must(r.Kafka.Admin.CreateTopic(ctx, partitions, -1, nil, topic))
	r.prove(ctx, func(ctx context.Context) { r.Spread(ctx, r.schedule(), r.For) })
	return r.ledger
}

// newRun returns a run without servers. The caller closes the run.
func (p Proof) newRun(ctx context.Context, s proof.Stage, setup string) *run {
	r := &run{Proof: p, addresses: map[*proof.Member]string{}, hooks: webhooks.MadeUp(300, 500), random: rand.New(rand.NewPCG(p.Seed, 5))}
	r.ledger = Ledger{Messages: p.messages(), Copies: p.copies(), Planted: p.Plant, Faults: map[string]int{}}
	r.Fleet = proof.NewFleet(ctx, s, setup, &r.ledger.Tally)
	return r
}

func (p Proof) messages() int { return int(p.For.Seconds() * float64(p.Rate)) }

func (p Proof) copies() int { return p.messages() / 10 }

// plain reports whether the members run a plain loop instead of semel.
func (p Proof) plain() bool { return p.Plant == proof.SettleFirst }

// prove publishes while the function work runs, and stops the members when all messages are processed.
func (r *run) prove(ctx context.Context, work func(context.Context)) {
	for range members {
		r.add()
	}
	for _, m := range r.Members {
		m.Await(ctx, time.Minute, func() bool { return r.ready(m) })
	}
	r.Watch = proof.WatchOffsets(r.Kafka, proof.Consumer, topic)
	r.received = proof.WatchOffsets(r.Kafka, receiver, topic)
	r.Feed = r.publish(ctx)
	work(ctx)
	r.Published(ctx)
	if !r.Patiently(ctx, patience, 200*time.Millisecond, r.settled) {
		r.Say("after %v not all messages are processed", patience)
	}
	for _, m := range r.Members {
		r.end(m)
	}
	r.Over()
	r.audit(ctx)
}

func (r *run) close() {
	if r.received != nil {
		r.received.Stop()
	}
	r.Close()
}

// publish starts two producers, which can publish copies of the same message.
func (r *run) publish(ctx context.Context) *proof.Publisher {
	const producers = 2
	plan := proof.Plan(r.Seed, r.messages(), r.copies(), 1000, nil)
	random := rand.New(rand.NewPCG(r.Seed, 6))
	return proof.Publish(ctx, producers, func(ctx context.Context, p *proof.Publisher) {
		p.Evenly(ctx, len(plan), r.For, func(i int) {
			hook := r.hooks[plan[i]%len(r.hooks)]
			p.Send(ctx, random.IntN(producers), proof.CloudEvent(random.Int32N(partitions), []byte(hook.Repository), hook.Body, webhooks.ID(plan[i]), "https://api.github.com", hook.Event))
		})
	}, r.ProducerOptions(topic)...)
}

// add starts another member.
func (r *run) add() {
	m := r.Add()
	m.Policy, r.addresses[m] = policyFile, proof.Must(proof.FreeAddress())
	m.Env = append(m.Env, "LISTEN="+r.addresses[m])
	if r.plain() {
		r.RunPlainLoop(m, r.Plant, topic, session)
	}
	m.Start()
}

// ready reports whether a member consumes. A plain loop does not say.
func (r *run) ready(m *proof.Member) bool { return r.plain() || proof.Ready(r.addresses[m]) }

// end drains and stops a member. An error of a plain loop is ignored.
func (r *run) end(m *proof.Member) {
	if r.plain() {
		_ = m.End()
	} else {
		r.Drain(m, proof.Consumer)
	}
}

// writePolicy writes the policy of all members. Both consumers get the further keys.
func (r *run) writePolicy(further ...string) {
	marker := proof.Policy{Store: `postgres: {url: "${DATABASE}"}`, Listen: "${LISTEN}", Batch: 100, Timeout: 5 * time.Second,
		Source:   fmt.Sprintf(`kafka: {brokers: %q, topics: [%s], session_timeout: %s}`, strings.Join(r.Cluster.Brokers(), ","), topic, session),
		Identity: `{id: "header:ce-id", source: "header:ce-source"}`, ID: "header:ce-id", Type: "header:ce-type"}
	inbox := marker
	inbox.Name, inbox.Strategy = receiver, "inbox"
	marker.More, inbox.More = append(further, "retry: {max_attempts: 40, initial_delay: 100ms, max_delay: 2s}"), append(proof.InboxKeys(), further...)
	r.Write(policyFile, marker.Text(inbox))
}

// settled reports whether both groups have committed all offsets, and the inbox has no unfinished rows.
func (r *run) settled(ctx context.Context) bool {
	if !r.Watch.AtEnd(ctx) || !r.plain() && !r.received.AtEnd(ctx) {
		return false
	}
	return r.plain() || r.Count(ctx, unfinished) == 0
}

// The query for the number of unfinished and parked rows.
const unfinished = `select count(*) from semel_inbox where state <> 'COMPLETED'`

// effects yields the id of each effect that must exist.
func (r *run) effects() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range r.messages() {
			id := webhooks.ID(i)
			if !yield(id) || !r.plain() && !yield(receiver+"/"+id) {
				return
			}
		}
	}
}
