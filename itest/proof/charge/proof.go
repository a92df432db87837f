//go:build unix

// Package charge is a fault test: it checks that payments are charged once, although the calls that charge them are not
// part of a transaction. Orders come from a topic. A consumer books each order and writes an intent in the same
// transaction. A sender then charges the order at a provider. The provider loses answers, fails after it took the
// money, and forgets keys (itest/worlds/provider). Consumers and senders are separate processes. The test kills and
// freezes the consumers and senders at random times and at each named point. The provider's own log says what was
// charged. For comparison, a naive consumer works on the same topic: this consumer calls without a key and commits
// afterwards. The lost and doubled charges of the naive consumer show which failures Semel prevents.
package charge

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/provider"
	"github.com/semel-go/semel/pgxstore"
)

// Proof is the configuration of one run of the fault test.
type Proof struct {
	Payments   int           `flag:"payments, each with an identity of its own"`
	Duplicates int           `flag:"copies that producers send"`
	Publish    time.Duration `flag:"minimum duration of publishing"`
	// Consumers, Senders and Naive are the numbers of processes of each kind.
	Consumers, Senders, Naive int
	Kills                     int `flag:"kills at random moments"`
	Freezes                   int `flag:"freezes at random moments"`
	Rounds                    int `flag:"kills at each named point"`
	Restarts                  int `flag:"restarts of the provider, by SIGKILL"`
	// Window is the time for which senders repeat a call with the same key. The provider keeps a key for longer than
	// Window plus a freeze, because a process that is frozen just before its call does not check the time again.
	Window time.Duration
	// Timeout is the timeout of a call. Lease is the length of a lease. A freeze lasts longer than a lease.
	Timeout, Lease time.Duration
	// Most is the longest delay between two attempts.
	Most time.Duration
	// Plant is the name of a fault that the run must detect, or "": see Room.Plants.
	Plant string
	Seed  uint64
}

const (
	topic      = "orders"
	partitions = 6
	bookings   = "bookings" // name of the consumer and of its group
	charges    = "charges"  // name of the sender
	naiveGroup = "naive"
	// The prefix of the references that the naive consumer charges.
	naivePrefix = "naive-"
)

// freeze returns how long a process is frozen.
func (p Proof) freeze() time.Duration { return p.Lease + time.Second }

// keyRetention returns how long after the first call with a key the provider remembers this key.
func (p Proof) keyRetention() time.Duration { return p.Window + p.freeze() + 2*p.Timeout }

// run is the state of a running Proof.
type run struct {
	Proof
	*proof.Fleet
	pool    *pgxpool.Pool
	store   *pgxstore.Store
	address string // address of the provider
	crew    []*member
	random  *rand.Rand
	ledger  *Ledger
}

// Run runs the fault test on servers of its own and returns the ledger; see Ledger.Wrong and Ledger.Fault.
func (p Proof) Run(ctx context.Context, s proof.Stage) Ledger {
	l := Ledger{Payments: p.Payments, Planted: p.Plant, At: map[string]int{}, least: p}
	r := newRun(p, s, &l)
	defer r.close()
	r.prepare(ctx)
	began := time.Now()
	r.prove(ctx)
	l.Seconds = proof.Since(began)
	r.audit(ctx)
	return l
}

func newRun(p Proof, s proof.Stage, l *Ledger) *run {
	r := &run{Proof: p, ledger: l, random: rand.New(rand.NewPCG(p.Seed, 9))}
	r.Fleet = &proof.Fleet{Stage: s, Care: r.tend}
	return r
}

func (r *run) close() {
	r.Close()
	if r.pool != nil {
		r.pool.Close()
	}
}

// SQL that creates the table for bookings. The table has no unique key, so only Semel prevents a second booking.
const setup = `create table effects (delivery text not null, cents bigint not null)`

// prepare starts servers and creates the topic and the tables.
func (r *run) prepare(ctx context.Context) {
	r.OnKafka(services.KafkaOptions{})
	r.OnPostgres(services.Options{})
	r.address = proof.Must(proof.FreeAddress())
	r.pool = proof.Must(pgxpool.New(ctx, r.Server.DSN()))
	r.store = proof.Must(pgxstore.New(r.pool, pgxstore.Options{}))
	proof.Must(r.store.Migrate(ctx))
	r.Exec(ctx, setup)
	proof.Must(r.Kafka.Admin.CreateTopic(ctx, partitions, -1, nil, topic))
}

// prove publishes the orders and injects the faults while all processes run. After the faults, prove waits until only
// messages remain that need a person's decision. In the end, prove decides about the remaining messages and waits until
// they are processed.
func (r *run) prove(ctx context.Context) {
	r.enlist()
	r.Watch = proof.WatchOffsets(r.Kafka, bookings, topic)
	r.Feed = r.publish(ctx)
	r.Spread(ctx, r.events(), r.Publish)
	r.sprungAll(ctx)
	r.Published(ctx)
	r.waitSettled(ctx)
	r.decideAll(ctx)
	r.dismiss()
}

func (r *run) log() string { return r.Path("provider.log") }

func (r *run) providerOrder() provider.Order {
	return provider.Order{
		Address: r.address, Log: r.log(), Window: r.keyRetention(), Hold: 10 * r.Timeout,
		Fates: provider.Fates{Seed: r.Seed, PerMille: 150, Stubborn: uint64(40 * 1_000_000 / r.Payments)},
	}
}
