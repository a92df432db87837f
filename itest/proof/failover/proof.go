// Package failover is a fault test: it checks that a failover under load neither loses nor doubles an effect. Two
// consumers with the same name write to a primary. The primary is killed with SIGKILL, its synchronous standby is
// promoted, and the consumers find the new primary through a connection string with two hosts.
package failover

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// Proof is the configuration of one run of the fault test.
type Proof struct {
	Driver workload.Driver
	// Before is the number of committed deliveries at which the primary is killed. After is the number of
	// deliveries that the promoted standby must commit.
	Before, After int
	Seed          uint64
}

// run is the state of a running Proof.
type run struct {
	Proof
	*proof.Rivals
	server *services.Server
	enough atomic.Bool
	ledger Ledger
}

// Run runs the fault test on servers of its own and returns the ledger; see Ledger.Wrong and Ledger.Fault.
func (p Proof) Run(ctx context.Context, s proof.Stage) Ledger {
	r := &run{Proof: p, server: services.StartPostgres(s.T, services.Options{Standby: true})}
	proof.Check(workload.Migrate(ctx, r.server.DSN()))
	r.Rivals = &proof.Rivals{Driver: p.Driver, Feed: &workload.Feed{Enough: r.enough.Load, Seed: p.Seed}, DSN: r.server.FailoverDSN(), Workers: 4, Most: 20}
	r.Start(ctx)
	defer func() { _ = r.End() }()
	r.failOver(ctx)
	proof.Check(cmp.Or(<-r.Over, <-r.Over, r.End()))
	db := proof.Must(sql.Open("pgx", r.server.Standby().DSN()))
	defer func() { _ = db.Close() }()
	r.Audit(ctx, db, &r.ledger.RivalsLedger)
	return r.ledger
}

// failOver kills the primary while the consumers write, and promotes the standby.
func (r *run) failOver(ctx context.Context) {
	r.waitUntil(ctx, "both consumers have started", r.Ready)
	r.reach(ctx, r.Before)
	killed := time.Now()
	r.server.Kill()
	r.ledger.Before = r.Applied()
	r.server.Standby().Promote()
	r.reach(ctx, r.ledger.Before+1)
	r.ledger.Outage = time.Since(killed).Milliseconds()
	r.reach(ctx, r.ledger.Before+r.After)
	r.enough.Store(true)
}

// The time limit for a step that normally takes seconds.
const patience = time.Minute

// reach waits until the consumers report n committed messages.
func (r *run) reach(ctx context.Context, n int) {
	r.waitUntil(ctx, fmt.Sprintf("%d messages are in commits", n), func() bool { return r.Applied() >= n })
}

// waitUntil waits until condition returns true while the consumers run. waitUntil fails after the time in the constant
// patience.
func (r *run) waitUntil(ctx context.Context, what string, condition func() bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	proof.During("until "+what, func() {
		proof.Until(ctx, 2*time.Millisecond, func() bool {
			if len(r.Over) > 0 {
				proof.Check(fmt.Errorf("a consumer ended too early: %w", <-r.Over))
			}
			return condition()
		})
	})
}
