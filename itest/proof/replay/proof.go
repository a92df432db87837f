//go:build unix

// Package replay proves that failed and lost messages take effect once when people repair them,
// and that a projection can be rebuilt. Transfers come from a topic. Some fail permanently and
// become dead letters. Their causes are repaired, and two operators at once replay them, by
// filter and by group, some of them edited, while copies arrive. Then a replay from the start
// of the topic restores what a damaged database has lost. Last, the projection is rebuilt
// beside the active one and replaces it. Consumers and commands are killed all the time. The
// preview of each command must match its result.
package replay

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
)

// Proof is one run.
type Proof struct {
	// The first part of the messages is published during Publish, the others during the
	// repairs.
	Messages   int           `flag:"transfers, each with an identity of its own"`
	Copies     int           `flag:"copies by producers"`
	Publish    time.Duration `flag:"over how long the first part is published, at least"`
	Partitions int
	// Crew is the number of processes of the consumer, Batch the maximum number of messages in
	// a transaction.
	Crew, Batch int
	// Session is the session timeout of the group. Static members return as the same member.
	Session time.Duration
	Static  bool
	Kills   int   `flag:"kills of members while the first part is published, and as many over the others"`
	Shots   Shots // of commands
	Edited  int   `flag:"dead letters that are edited before they are replayed"`
	// Plant, if set, plants a fault: see Room.Plants.
	Plant string
	Seed  uint64
}

// Shots is how often each command is killed.
type Shots struct {
	// Filter and Group are kills of replays of dead letters, Again of the replay of lost
	// messages, and Rebuild of the rebuild.
	Filter, Group, Again, Rebuild int
}

func (s Shots) all() int { return s.Filter + s.Group + s.Again + s.Rebuild }

const (
	topic = "transfers"
	dead  = "transfers-dead"
	group = "balances" // the consumer and its group
)

// run is a running Proof.
type run struct {
	Proof
	*proof.Fleet
	random *rand.Rand
	calls  []*operator // all, also those that have ended
	sent   int         // how many transfers are published
	active int         // the generation that the members work in
	ledger *Ledger
}

// Run runs the proof on private servers and returns the ledger; judge the ledger with Fault.
func (p Proof) Run(ctx context.Context, s proof.Stage) Ledger {
	l := Ledger{Messages: p.Messages, Planted: p.Plant, least: p}
	r := &run{Proof: p, ledger: &l, Fleet: proof.NewFleet(ctx, s, setup, &l.Tally), random: rand.New(rand.NewPCG(p.Seed, 5))}
	defer r.Close()
	r.OnKafka(services.KafkaOptions{})
	r.OnPostgres()
	r.writePolicy()
	proof.Must(r.Kafka.Admin.CreateTopic(ctx, int32(r.Partitions), -1, nil, topic))
	proof.Must(r.Kafka.Admin.CreateTopic(ctx, 2, -1, nil, dead))
	defer r.killCalls()
	r.prove(ctx)
	r.audit(ctx)
	return l
}

// part is one step of the proof.
type part struct {
	name string
	do   func(context.Context)
}

// prove runs all steps. The ledger reports the result of each.
func (r *run) prove(ctx context.Context) {
	for range r.Crew {
		m := r.Add()
		m.Policy, m.Counted = policyFile, true
		m.Start()
	}
	r.Watch = proof.WatchOffsets(r.Kafka, group, topic)
	parts := []part{
		{"transfers come, and some fail for good", r.fail},
		{"dead letters are replayed, and nothing else comes", r.repair},
		{"dead letters are replayed while messages and copies come", r.repairLive},
		{"letters that the store has lost are replayed from their topic", r.fromTopic},
		{"what the database has lost is replayed from the topic", r.again},
		{"the projection is built anew while messages come", r.rebuild},
	}
	if r.Plant == "new-ids" || r.Plant == "unmended" {
		parts = parts[:3] // what comes then finds nothing as it must be
	}
	for _, part := range parts {
		r.Say("%s", part.name)
		proof.During("while "+part.name, func() { part.do(ctx) })
	}
	for _, m := range r.Members {
		r.Drain(m, group)
	}
	r.Over()
}
