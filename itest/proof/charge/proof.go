//go:build unix

// Package charge proves that payments are charged once, although the calls that charge them are not part of a
// transaction. Orders come from a topic. A consumer books each order and writes an intent in the same
// transaction. A sender then charges the order at a provider. The provider loses answers, fails after it took
// the money, and forgets keys (itest/worlds/provider). Consumers and senders are separate processes. The
// proof kills and freezes these processes at random times and at each named point. The provider's own log
// says what was charged. For comparison, a naive consumer works on the same topic: it calls without a key and
// commits afterwards. Its lost and doubled charges show which failures Semel prevents.
package charge

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/provider"
	"github.com/semel-go/semel/pgxstore"
)

// Proof is one run.
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
	// Window is how long senders repeat a call with the same key. The provider keeps a key for longer than
	// Window plus a freeze, because a process that is frozen just before its call does not check the time
	// again.
	Window time.Duration
	// Timeout is the timeout of a call. Lease is the length of a lease. A freeze lasts longer than a lease.
	Timeout, Lease time.Duration
	// Most is the longest delay between two attempts.
	Most time.Duration
	// Plant is the name of a fault to plant, or "": see Room.Plants.
	Plant string
	Seed  uint64
}

const (
	topic      = "orders"
	partitions = 6
	bookings   = "bookings" // name of the consumer and of its group
	charges    = "charges"  // name of the sender
	naiveGroup = "naive"
	// naivePrefix is the prefix of the references that the naive consumer charges.
	naivePrefix = "naive-"
)

// freeze returns how long a process is frozen.
func (p Proof) freeze() time.Duration { return p.Lease + time.Second }

// forgets returns how long after the first call with a key the provider remembers this key.
func (p Proof) forgets() time.Duration { return p.Window + p.freeze() + 2*p.Timeout }

// run is a running Proof.
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

// Run runs the proof on private servers and returns the ledger. Call Ledger.Fault to see whether the proof
// succeeded. An error of Run means that the run itself failed.
func (p Proof) Run(ctx context.Context, s proof.Stage) (Ledger, error) {
	l := Ledger{Payments: p.Payments, Planted: p.Plant, At: map[string]int{}, least: p}
	r := newRun(p, s, &l)
	defer r.close()
	if err := r.prepare(ctx); err != nil {
		return l, err
	}
	began := time.Now()
	if err := r.prove(ctx); err != nil {
		return l, err
	}
	l.Seconds = proof.Seconds(time.Since(began).Seconds())
	return l, r.audit(ctx)
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

// setup creates the tables for bookings. The tables have no unique key, so only Semel prevents a second
// booking.
const setup = `create table effects (delivery text not null, cents bigint not null)`

// prepare starts servers and creates the topic and the tables.
func (r *run) prepare(ctx context.Context) (err error) {
	r.OnKafka(services.KafkaOptions{})
	if err := r.OnPostgres(); err != nil {
		return err
	}
	if r.address, err = proof.FreeAddress(); err != nil {
		return err
	}
	if r.pool, err = pgxpool.New(ctx, r.Server.DSN()); err != nil {
		return err
	}
	if r.store, err = pgxstore.New(r.pool, pgxstore.Options{}); err != nil {
		return err
	}
	if _, err = r.store.Migrate(ctx); err != nil {
		return err
	}
	if _, err = r.pool.Exec(ctx, setup); err != nil {
		return err
	}
	_, err = r.Kafka.Admin.CreateTopic(ctx, partitions, -1, nil, topic)
	return err
}

// prove publishes the orders and injects the faults while all processes run. Afterwards prove waits until the
// only remaining messages are those that need a person's decision. It then decides these messages and waits
// until they are processed.
func (r *run) prove(ctx context.Context) (err error) {
	if err := r.enlist(); err != nil {
		return err
	}
	r.Watch = proof.WatchOffsets(r.Kafka, bookings, topic)
	if r.Feed, err = r.publish(ctx); err != nil {
		return err
	}
	if err := r.Spread(ctx, r.events(), r.Publish); err != nil {
		return err
	}
	if err := r.sprungAll(ctx); err != nil {
		return err
	}
	if err := r.Published(ctx); err != nil {
		return err
	}
	if err := r.settled(ctx); err != nil {
		return err
	}
	if err := r.decideAll(ctx); err != nil {
		return err
	}
	return r.dismiss()
}

// log returns the path of the provider's log.
func (r *run) log() string { return filepath.Join(r.Folder, "provider.log") }

// providerOrder returns the configuration of the provider.
func (r *run) providerOrder() provider.Order {
	return provider.Order{
		Address: r.address, Log: r.log(), Window: r.forgets(), Hold: 10 * r.Timeout,
		Fates: provider.Fates{Seed: r.Seed, PerMille: 150, Stubborn: uint64(40 * 1_000_000 / r.Payments)},
	}
}
