//go:build unix

// Package replay is a fault test: it checks that failed and lost messages take effect once when people repair them, and
// that a projection can be rebuilt. Transfers come from a topic. Some transfers fail permanently and become dead
// letters. The test repairs the causes, and two operators at the same time replay the dead letters, by filter and by
// group, while copies arrive. Some dead letters are edited first. In the next step, a replay from the start of the
// topic restores the messages that a damaged database has lost. At the end the projection is rebuilt beside the active
// projection and replaces it. Consumers and commands are killed all the time. The preview of each command must match
// its result.
package replay

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
)

// Proof is the configuration of one run of the fault test.
type Proof struct {
	// The first part of the messages is published during Publish. The other parts are published during the
	// repairs.
	Messages   int           `flag:"transfers, each with an identity of its own"`
	Copies     int           `flag:"copies that producers send"`
	Publish    time.Duration `flag:"minimum duration of publishing the first part"`
	Partitions int
	// Crew is the number of processes of the consumer. Batch is the maximum number of messages in a
	// transaction.
	Crew, Batch int
	// Session is the session timeout of the group. A static member that is restarted within this time keeps
	// its partitions.
	Session time.Duration
	Static  bool
	Kills   int   `flag:"kills of members while the first part is published, and again while the other parts are published"`
	Shots   Shots // how often commands are killed
	Edited  int   `flag:"dead letters to edit before they are replayed"`
	// Plant is the name of a fault that the run must detect, or "": see Room.Plants.
	Plant string
	Seed  uint64
}

// Shots has the number of kills of each command.
type Shots struct {
	// Filter and Group are the numbers of kills of commands that replay dead letters. Again is the number of
	// kills of the replay of lost messages. Rebuild is the number of kills of the rebuild.
	Filter, Group, Again, Rebuild int
}

func (s Shots) total() int { return s.Filter + s.Group + s.Again + s.Rebuild }

const (
	topic = "transfers"
	dead  = "transfers-dead"
	group = "balances" // name of the consumer and of its group
)

// run is the state of a running Proof.
type run struct {
	Proof
	*proof.Fleet
	random *rand.Rand
	calls  []*operator // all commands, including those that have ended
	sent   int         // number of published transfers
	active int         // the generation of results that the members write
	ledger *Ledger
}

// Run runs the fault test on servers of its own and returns the ledger; see Ledger.Wrong and Ledger.Fault.
func (p Proof) Run(ctx context.Context, s proof.Stage) Ledger {
	l := Ledger{Messages: p.Messages, Planted: p.Plant, least: p}
	r := &run{Proof: p, ledger: &l, Fleet: proof.NewFleet(ctx, s, setup, &l.Tally), random: rand.New(rand.NewPCG(p.Seed, 5))}
	defer r.Close()
	r.OnKafka(services.KafkaOptions{})
	r.OnPostgres(services.Options{})
	r.writePolicy()
	proof.Must(r.Kafka.Admin.CreateTopic(ctx, int32(r.Partitions), -1, nil, topic))
	proof.Must(r.Kafka.Admin.CreateTopic(ctx, 2, -1, nil, dead))
	defer r.killCalls()
	r.prove(ctx)
	r.audit(ctx)
	return l
}

// part is one step of the fault test.
type part struct {
	name string
	do   func(context.Context)
}

// prove runs all steps. The ledger reports the result of each step.
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
		{"what the database has lost is replayed from the topic", r.replayAll},
		{"the projection is built anew while messages come", r.rebuild},
	}
	if r.Plant == "new-ids" || r.Plant == "unmended" {
		parts = parts[:3] // the later steps need the result of the repairs that this fault prevents
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
