// Package prooffailover proves that a failover under load neither loses nor
// doubles an effect: the primary is killed with SIGKILL while two consumers of
// one name write to it, its synchronous standby is promoted, and the consumers
// find it by a connection string with two hosts.
package prooffailover

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/itest/ledger"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/workload"
)

// Proof is one run.
type Proof struct {
	Driver workload.Driver
	// Before is how many deliveries are in commits when the primary is killed,
	// After how many more the promoted standby must take.
	Before, After int
	Seed          uint64
}

// Ledger is what came out.
type Ledger struct {
	Driver                           string
	Expected, Applied, Lost, Doubled int
	// Markers that say applied.
	Markers int
	// SetAside are inbox rows; Unsettled are deliveries that the two sources
	// have not been told of.
	SetAside, Unsettled int
	// Before were the deliveries in commits when the primary was killed, at least.
	Before int
	// Unknown are batches whose commit was unknown, NotReady how often the
	// consumers said that the store is down.
	Unknown, NotReady int
	Duplicates        int
	// Outage is the time from the kill to the first effect after it.
	Outage time.Duration
}

// run is the state of a proof under way.
type run struct {
	Proof
	server            *services.Server
	feed              *workload.Feed
	applied           atomic.Int64
	enough            atomic.Bool
	unknown, notReady atomic.Int64
}

// Run proves on private servers and returns the ledger; judge it with Fault.
// An error says that the run itself failed.
func (p Proof) Run(ctx context.Context, t testing.TB) (Ledger, error) {
	r := &run{Proof: p}
	r.feed = &workload.Feed{Enough: r.enough.Load, Seed: p.Seed}
	r.server = services.StartPostgres(t, services.Options{Standby: true})
	if err := workload.Migrate(ctx, r.server.DSN()); err != nil {
		return Ledger{}, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	over := make(chan error, 2)
	l := Ledger{Driver: p.Driver.Name}
	var sources []*workload.Source
	var consumers []workload.Consumer
	for n, name := range []string{"first", "second"} {
		source := r.feed.Source(uint64(n))
		consumer, closePool, err := r.Driver.Open(r.options(name, source))
		if err != nil {
			return l, err
		}
		defer closePool()
		sources, consumers = append(sources, source), append(consumers, consumer)
	}
	for _, c := range consumers {
		go func() { over <- c.Run(ctx) }()
	}
	ready := func() bool {
		return !slices.ContainsFunc(consumers, func(c workload.Consumer) bool { ready, _ := c.Ready(); return !ready })
	}
	if err := r.until(ctx, over, "both consumers have started", ready); err != nil {
		return l, err
	}
	if err := r.failOver(ctx, over, &l); err != nil {
		return l, err
	}
	if err := errors.Join(<-over, <-over); err != nil {
		return l, err
	}
	l.Expected, l.Unknown, l.NotReady = r.feed.Issued(), int(r.unknown.Load()), int(r.notReady.Load())
	for i, c := range consumers {
		l.Duplicates += int(c.Counts().Duplicates)
		l.Unsettled += l.Expected - sources[i].Settled(semel.Ack)
	}
	return l, audit(ctx, r.server.Standby().DSN(), &l)
}

func (r *run) options(name string, source contract.Source) workload.Options {
	c := workload.Config(source)
	c.Workers, c.Batch.Most, c.Hold = 4, 20, time.Second
	c.MaxUnsettled = contract.Bound{Messages: 512, Bytes: 1 << 20}
	c.Observers = []semel.Observer{r}
	return workload.Options{DSN: r.server.FailoverDSN(), Connections: 6, Handler: workload.Effect(name), Config: c}
}

// Observe implements semel.Observer.
func (r *run) Observe(e semel.Event) {
	switch e.Kind {
	case semel.EventCommitted:
		r.applied.Add(int64(e.Messages))
	case semel.EventUnknown:
		r.unknown.Add(1)
	case semel.EventNotReady:
		r.notReady.Add(1)
	}
}

// failOver kills the primary while the consumers write and promotes the
// standby.
func (r *run) failOver(ctx context.Context, over <-chan error, l *Ledger) error {
	if err := r.reach(ctx, over, int64(r.Before)); err != nil {
		return err
	}
	killed := time.Now()
	r.server.Kill()
	l.Before = int(r.applied.Load())
	r.server.Standby().Promote()
	if err := r.reach(ctx, over, int64(l.Before+1)); err != nil {
		return err
	}
	l.Outage = time.Since(killed)
	err := r.reach(ctx, over, int64(l.Before+r.After))
	r.enough.Store(true)
	return err
}

// patience is how long the consumers may take for what takes them seconds.
const patience = time.Minute

// reach waits until this many messages were in commits that the consumers know
// of.
func (r *run) reach(ctx context.Context, over <-chan error, n int64) error {
	return r.until(ctx, over, fmt.Sprintf("%d messages are in commits", n), func() bool { return r.applied.Load() >= n })
}

// until waits for a condition while the consumers run.
func (r *run) until(ctx context.Context, over <-chan error, what string, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case err := <-over:
			return fmt.Errorf("a consumer ended under way: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("waited %s until %s; %d messages are in commits: %w", patience, what, r.applied.Load(), ctx.Err())
		}
	}
	return nil
}

func audit(ctx context.Context, dsn string, l *Ledger) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	var rows int
	err = db.QueryRowContext(ctx, `
		select count(*), count(distinct id), (select count(*) from semel_markers where outcome = 1), (select count(*) from semel_inbox)
		from effects`).Scan(&rows, &l.Applied, &l.Markers, &l.SetAside)
	l.Lost, l.Doubled = l.Expected-l.Applied, rows-l.Applied
	return err
}

// Fault says why the ledger is no proof; nil if it is one.
func (l Ledger) Fault() error {
	switch {
	case l.Lost != 0 || l.Doubled != 0:
		return fmt.Errorf("lost %d, doubled %d", l.Lost, l.Doubled)
	case l.SetAside != 0 || l.Unsettled != 0:
		return fmt.Errorf("set aside %d, not settled %d", l.SetAside, l.Unsettled)
	case l.Markers != l.Applied:
		return fmt.Errorf("%d markers say applied, %d messages are", l.Markers, l.Applied)
	case l.NotReady+l.Unknown == 0:
		return errors.New("the consumers did not notice the failover: no proof")
	}
	return nil
}

// Write prints the ledger for people.
func (l Ledger) Write(w io.Writer) error {
	fmt.Fprintf(w, "%s, failover to the synchronous standby\n", l.Driver)
	return ledger.WriteTable(w, []ledger.Line{
		{"expected", l.Expected},
		{"applied", l.Applied},
		{"lost", l.Lost},
		{"doubled", l.Doubled},
		{"set aside", l.SetAside},
		{"not settled", l.Unsettled},
		{"in commits when the primary was killed", l.Before},
		{"batches whose commit was unknown", l.Unknown},
		{"times the store was called down", l.NotReady},
		{"duplicates absorbed", l.Duplicates},
		{"from the kill to the first commit, ms", l.Outage.Milliseconds()},
	})
}
