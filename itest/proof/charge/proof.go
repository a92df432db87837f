//go:build unix

// Package charge proves that payments are charged once although the calls that charge
// them are in no transaction: orders come from a topic, a consumer books each and writes
// an intent in the same transaction, and a sender charges it at a provider that loses
// answers, fails after it took the money and forgets keys (itest/worlds/provider). Consumers and
// senders are processes, which are killed and frozen at random and at each named point.
// What was charged, the provider's own log says. Beside them a naive consumer works on the
// same topic, which calls without a key and settles afterwards: what it doubles and loses
// is what the others are spared.
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
	Duplicates int           `flag:"copies by producers"`
	Publish    time.Duration `flag:"over how long they are published, at least"`
	// Consumers, Senders and Naive are how many processes there are of each.
	Consumers, Senders, Naive int
	Kills                     int `flag:"kills at random moments"`
	Freezes                   int `flag:"freezes at random moments"`
	Rounds                    int `flag:"kills, or freezes, at each named point"`
	Restarts                  int `flag:"restarts of the provider, by SIGKILL"`
	// Window is for how long senders repeat a call under its key. The provider knows a key
	// for longer, by more than a process stands still: one that is frozen before it calls
	// looks at no clock when it goes on.
	Window time.Duration
	// Timeout is what a call has, Lease how long a claim lasts that nobody extends; a
	// process is frozen for longer.
	Timeout, Lease time.Duration
	// Most is the longest wait between two attempts.
	Most time.Duration
	// Plant, when set, plants a fault: see Room.Plants.
	Plant string
	Seed  uint64
}

const (
	topic      = "orders"
	partitions = 6
	bookings   = "bookings" // the consumer and its group
	charges    = "charges"  // the sender
	naiveGroup = "naive"
	// naivePrefix begins the references of what the naive consumer charges.
	naivePrefix = "naive-"
)

// freeze is how long a process stands still.
func (p Proof) freeze() time.Duration { return p.Lease + time.Second }

// forgets is when the provider does, from the first call under a key.
func (p Proof) forgets() time.Duration { return p.Window + p.freeze() + 2*p.Timeout }

// run is a Proof under way.
type run struct {
	Proof
	*proof.Fleet
	pool    *pgxpool.Pool
	store   *pgxstore.Store
	address string // of the provider
	crew    []*member
	random  *rand.Rand
	ledger  *Ledger
}

// Run proves on private servers and returns the ledger; judge it with Fault.
// An error says that the run itself failed.
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

// setup is what a booking is written into. Nothing there keeps a second one out.
const setup = `create table effects (delivery text not null, cents bigint not null)`

// prepare starts servers and makes topic and tables.
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

// prove has everybody work while producers publish and things happen, until nothing
// waits any more but what a person decides; that is decided, and worked on.
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

// log is the provider's.
func (r *run) log() string { return filepath.Join(r.Folder, "provider.log") }

// providerOrder is what the provider is like.
func (r *run) providerOrder() provider.Order {
	return provider.Order{
		Address: r.address, Log: r.log(), Window: r.forgets(), Hold: 10 * r.Timeout,
		Fates: provider.Fates{Seed: r.Seed, PerMille: 150, Stubborn: uint64(40 * 1_000_000 / r.Payments)},
	}
}
