// Package failover proves that a failover under load neither loses nor doubles an effect. Two
// consumers with the same name write to a primary. The primary is killed with SIGKILL, its
// synchronous standby is promoted, and the consumers find it through a connection string with
// two hosts.
package failover

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// Proof is one run.
type Proof struct {
	Driver workload.Driver
	// Before is the number of committed deliveries at which the primary is killed. After is the number of
	// deliveries that the promoted standby must commit.
	Before, After int
	Seed          uint64
}

// run is the state of a running proof.
type run struct {
	Proof
	*proof.Rivals
	server *services.Server
	enough atomic.Bool
	ledger Ledger
}

// Run runs the proof on private servers and returns the ledger. Call Ledger.Fault to see whether the proof
// succeeded. An error of Run means that the run itself failed.
func (p Proof) Run(ctx context.Context, s proof.Stage) (Ledger, error) {
	r := &run{Proof: p, server: services.StartPostgres(s.T, services.Options{Standby: true})}
	if err := workload.Migrate(ctx, r.server.DSN()); err != nil {
		return r.ledger, err
	}
	r.Rivals = &proof.Rivals{Driver: p.Driver, Feed: &workload.Feed{Enough: r.enough.Load, Seed: p.Seed}, DSN: r.server.FailoverDSN(), Workers: 4, Most: 20}
	if err := r.Start(ctx); err != nil {
		return r.ledger, err
	}
	err := r.failOver(ctx)
	for range 2 {
		if err == nil {
			err = <-r.Over
		}
	}
	if err = errors.Join(err, r.End()); err != nil {
		return r.ledger, err
	}
	db, err := sql.Open("pgx", r.server.Standby().DSN())
	if err != nil {
		return r.ledger, err
	}
	defer func() { _ = db.Close() }()
	err = r.Audit(ctx, db, &r.ledger.RivalsLedger)
	return r.ledger, err
}

// failOver kills the primary while the consumers write, and promotes the standby.
func (r *run) failOver(ctx context.Context) error {
	if err := r.until(ctx, "both consumers have started", r.Ready); err != nil {
		return err
	}
	if err := r.reach(ctx, r.Before); err != nil {
		return err
	}
	killed := time.Now()
	r.server.Kill()
	r.ledger.Before = r.Applied()
	r.server.Standby().Promote()
	if err := r.reach(ctx, r.ledger.Before+1); err != nil {
		return err
	}
	r.ledger.Outage = time.Since(killed).Milliseconds()
	err := r.reach(ctx, r.ledger.Before+r.After)
	r.enough.Store(true)
	return err
}

// patience is the time limit for a step that normally takes seconds.
const patience = time.Minute

// reach waits until the consumers report n messages in commits.
func (r *run) reach(ctx context.Context, n int) error {
	return r.until(ctx, fmt.Sprintf("%d messages are in commits", n), func() bool { return r.Applied() >= n })
}

// until waits for a condition while the consumers run. It fails after patience.
func (r *run) until(ctx context.Context, what string, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := proof.Until(ctx, 2*time.Millisecond, func() (bool, error) {
		select {
		case err := <-r.Over:
			return false, fmt.Errorf("a consumer ended too early: %w", err)
		default:
			return so(), nil
		}
	})
	if err != nil {
		return fmt.Errorf("until %s; %d messages are in commits: %w", what, r.Applied(), err)
	}
	return nil
}
