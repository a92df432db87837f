// Package proofbrokers proves that messages take effect once although, of three
// brokers, one is killed and another is frozen under load, while several members
// of one consumer work on. The ledger is read from the brokers and the database.
package proofbrokers

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/topics"
	"github.com/semel-go/semel/itest/workload"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Proof is one run.
type Proof struct {
	// Events is the least that is published, one in ten twice, Rate a second:
	// there is load for as long as anything happens to the brokers.
	Events, Rate int
	// Members of the consumer work at once.
	Members int
	// Rounds are each a broker killed and started again, and another frozen for
	// Freeze.
	Rounds int
	Freeze time.Duration
	// NextGen has the brokers balance the group (KIP-848).
	NextGen bool
	// Natural leaves the markers out, which the ledger must find.
	Natural bool
	Seed    uint64
	// Progress is told of each step; not nil.
	Progress io.Writer
}

const partitions = 6

// run is a Proof under way.
type run struct {
	Proof
	t       testing.TB
	brokers *services.Cluster
	kafka   *topics.Cluster
	db      *sql.DB
	dsn     string
	topic   string
	group   string
	feed    *feed
	watch   *watch
	fleet   fleet
	began   time.Time
	ledger  Ledger
}

// Run proves on servers of its own and returns the ledger; judge it with
// Fault. An error says that the run itself failed.
func (p Proof) Run(ctx context.Context, t testing.TB) (Ledger, error) {
	r := &run{Proof: p, t: t, group: topics.Name()}
	r.brokers = services.StartKafka(t, services.KafkaOptions{Nodes: 3})
	r.dsn = services.StartPostgres(t, services.Options{Settings: []string{"synchronous_commit = off"}}).DSN()
	if err := workload.Migrate(ctx, r.dsn); err != nil {
		return r.ledger, err
	}
	var err error
	if r.db, err = sql.Open("pgx", r.dsn); err != nil {
		return r.ledger, err
	}
	defer func() { _ = r.db.Close() }()
	r.began = time.Now()
	r.kafka = topics.Open(t, r.brokers.Brokers(), kgo.RequestTimeoutOverhead(time.Second), kgo.MetadataMinAge(500*time.Millisecond))
	r.topic = services.Topic(t, r.brokers.Brokers(), partitions)
	return r.ledger, r.prove(ctx)
}

// prove publishes, lets things happen to the brokers, and adds up when the
// group is at the end.
func (r *run) prove(ctx context.Context) error {
	r.watch = newWatch(r.kafka, r.group, r.topic)
	defer r.watch.stop()
	defer r.fleet.end()
	for range r.Members {
		if err := r.add(); err != nil {
			return err
		}
	}
	var err error
	if r.feed, err = r.publish(ctx); err != nil {
		return err
	}
	defer r.feed.stop()
	for n := range r.Rounds {
		if err := r.disturb(ctx, n); err != nil {
			return err
		}
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	r.watch.stop()
	if err := r.fleet.end(); err != nil {
		return err
	}
	return r.audit(ctx)
}

// disturb kills the broker that coordinates the group, and then freezes the one
// that does it then; both must come back, and messages must be applied
// meanwhile.
func (r *run) disturb(ctx context.Context, n int) error {
	if err := r.complete(ctx); err != nil {
		return err
	}
	victim, err := r.coordinator(ctx)
	if err != nil {
		return err
	}
	r.say("round %d: broker %d, the group's coordinator, is killed", n+1, victim)
	r.brokers.Node(victim).Kill()
	if err := r.moreEffects(ctx, "after a broker was killed"); err != nil {
		return err
	}
	r.brokers.Node(victim).Start()
	r.ledger.Killed++
	if err := r.complete(ctx); err != nil {
		return err
	}
	frozen, err := r.coordinator(ctx)
	if err != nil {
		return err
	}
	r.say("round %d: broker %d, now the coordinator, is frozen for %v", n+1, frozen, r.Freeze)
	r.brokers.Node(frozen).Freeze()
	until := time.After(r.Freeze)
	err = r.moreEffects(ctx, "while a broker is frozen")
	select {
	case <-until:
	case <-ctx.Done():
	}
	r.brokers.Node(frozen).Thaw()
	r.ledger.Frozen++
	return err
}

// settle waits until everything is published and the group is at the end of
// each partition. Whether it is, the ledger says.
func (r *run) settle(ctx context.Context) error {
	r.say("nothing more happens to the brokers")
	r.feed.rest()
	if err := r.wait(ctx, "everything is published", r.feed.over); err != nil {
		return err
	}
	if err := r.feed.err(); err != nil {
		return err
	}
	r.say("%d records are published", r.feed.acknowledged())
	if err := r.complete(ctx); err != nil {
		return err
	}
	most, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = r.wait(most, "the group is at the end", func() bool { return r.behind(most) == 0 })
	return ctx.Err()
}

func (r *run) say(format string, args ...any) {
	effects, _ := r.effects(context.Background())
	_, _ = fmt.Fprintf(r.Progress, "%5.1f s, %d effects: %s\n", time.Since(r.began).Seconds(), effects, fmt.Sprintf(format, args...))
}
