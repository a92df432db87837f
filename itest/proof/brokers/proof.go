// Package brokers proves that messages take effect once although, of three
// brokers, one is killed and another is frozen under load, while several members
// of one consumer work on. The ledger is read from the brokers and the database.
package brokers

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"github.com/semel-go/semel/itest/proof"
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
}

const partitions = 6

// run is a Proof under way.
type run struct {
	Proof
	proof.Stage
	brokers *services.Cluster
	kafka   *topics.Cluster
	db      *sql.DB
	dsn     string
	topic   string
	group   string
	feed    *proof.Publisher
	sent    int // events; read after the feed is over
	watch   *proof.Watch
	members *proof.Consumers
	started int // members, for their names
	began   time.Time
	ledger  Ledger
}

// Run proves on servers of its own and returns the ledger; judge it with
// Fault. An error says that the run itself failed.
func (p Proof) Run(ctx context.Context, s proof.Stage) (Ledger, error) {
	r := &run{Proof: p, Stage: s, group: topics.Name(), members: proof.NewConsumers(ctx, p.Members)}
	r.brokers = services.StartKafka(s.T, services.KafkaOptions{Nodes: 3})
	r.dsn = services.StartPostgres(s.T, services.Options{Settings: []string{"synchronous_commit = off"}}).DSN()
	if err := workload.Migrate(ctx, r.dsn); err != nil {
		return r.ledger, err
	}
	var err error
	if r.db, err = sql.Open("pgx", r.dsn); err != nil {
		return r.ledger, err
	}
	defer func() { _ = r.db.Close() }()
	r.began = time.Now()
	r.kafka = topics.Open(s.T, r.brokers.Brokers(), kgo.RequestTimeoutOverhead(time.Second), kgo.MetadataMinAge(500*time.Millisecond))
	r.topic = services.Topic(s.T, r.brokers.Brokers(), partitions)
	err = r.prove(ctx)
	return r.ledger, err
}

// prove publishes, lets things happen to the brokers, and adds up when the
// group is at the end.
func (r *run) prove(ctx context.Context) error {
	r.watch = proof.WatchOffsets(r.kafka, r.group, r.topic)
	defer r.watch.Stop()
	defer func() { _ = r.members.End() }()
	for range r.Members {
		if err := r.add(); err != nil {
			return err
		}
	}
	var err error
	if r.feed, err = r.publish(ctx); err != nil {
		return err
	}
	defer r.feed.Stop()
	for n := range r.Rounds {
		if err := r.disturb(ctx, n); err != nil {
			return err
		}
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	r.watch.Stop()
	if err := r.members.End(); err != nil {
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
	r.feed.Rest()
	if err := r.wait(ctx, "everything is published", r.feed.Over); err != nil {
		return err
	}
	if err := r.feed.Err(); err != nil {
		return err
	}
	r.say("%d records are published", r.feed.Acknowledged())
	if err := r.complete(ctx); err != nil {
		return err
	}
	most, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = r.wait(most, "the group is at the end", func() bool { return r.watch.AtEnd(most) })
	return ctx.Err()
}

func (r *run) say(format string, args ...any) {
	effects, _ := r.effects(context.Background())
	r.Say("%d effects: %s", effects, fmt.Sprintf(format, args...))
}
