// Package commit is a fault test: it checks that a lost COMMIT neither loses nor doubles an effect. Two consumers with
// the same name process the same messages on the same PostgreSQL server. A proxy cuts the connection at COMMIT,
// thousands of times: before the request reaches the server, or before the reply reaches the client. The test also
// freezes the synchronous standby now and then. While the standby is frozen, COMMIT waits on the server, although the
// connection to the client is already cut.
package commit

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// Direction says whether the request or the reply of a COMMIT is lost.
type Direction string

// The request is lost before the server gets it, or the reply is lost before the client gets it.
const (
	Request Direction = "request"
	Reply   Direction = "reply"
)

// Proof is the configuration of one run of the fault test.
type Proof struct {
	Driver    workload.Driver
	Direction Direction
	// Cuts is the number of commits of effects at which the proxy cuts the connection.
	Cuts int
	// LookUp adds a fault that the run must detect: the consumer resolves an unknown commit by looking up the marker.
	LookUp bool
	Seed   uint64
}

// The fraction of commits at which the proxy cuts the connection until the number of cuts is reached.
const share = 0.6

// run is the state of a running Proof.
type run struct {
	Proof
	proof.Stage
	*proof.Rivals
	server *services.Server
	cutter *cutter
	db     *sql.DB // connected to the server without the proxy
}

// Run runs the fault test on a server of its own and returns the ledger. Call Ledger.Wrong and Ledger.Fault to see
// whether the test succeeded.
func (p Proof) Run(ctx context.Context, s proof.Stage) Ledger {
	r := &run{Proof: p, Stage: s, cutter: newCutter(p.Cuts, share, p.Seed)}
	r.server = services.StartPostgres(s.T, services.Options{Standby: true, Settings: []string{"max_connections = 200"}})
	proof.Check(workload.Migrate(ctx, r.server.DSN()))
	proxy := pgproxy.Start(s.T, r.server.DSN())
	r.cutter.install(proxy, p.Direction)
	r.db = proof.Must(sql.Open("pgx", r.server.DSN()))
	defer func() { _ = r.db.Close() }()
	r.Rivals = &proof.Rivals{Driver: p.Driver, Feed: &workload.Feed{Enough: r.cutter.enough, Seed: p.Seed}, DSN: proxy.DSN(), Workers: 8, Most: 5}
	if p.LookUp {
		r.Rivals.LookUp = r.lookUp
	}
	r.Start(ctx)
	defer func() { _ = r.End() }()
	for range 2 {
		proof.Check(r.disturb(ctx))
	}
	ledger := Ledger{Direction: r.Direction, least: r.Cuts}
	ledger.Cuts, ledger.Waiting = r.cutter.made()
	proof.Check(r.End())
	r.Audit(ctx, r.db, &ledger.RivalsLedger)
	return ledger
}

// lookUp is the query of the fault LookUp. The query reports whether the marker exists.
func (r *run) lookUp(ctx context.Context, id []byte) (there bool, err error) {
	// In the table, one byte for the encoding precedes the id.
	err = r.db.QueryRowContext(ctx, `select exists (select from semel_markers where id = '\x00'::bytea || $1)`, id).Scan(&there)
	return there, err
}

// disturb freezes the standby again and again until a consumer has ended.
func (r *run) disturb(ctx context.Context) error {
	random := rand.New(rand.NewPCG(r.Seed, 4))
	told := time.Now()
	for {
		if ended, err := wait(ctx, r.Over, time.Duration(200+random.IntN(300))*time.Millisecond); ended {
			return err
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			cuts, waiting := r.cutter.made()
			r.Say("%s, %s lost: %d of %d cuts, %d of them under a waiting COMMIT", r.Proof.Driver.Name, r.Direction, cuts, r.Cuts, waiting)
		}
		if r.cutter.enough() {
			continue
		}
		r.cutter.freeze(true)
		r.server.Standby().Freeze()
		ended, err := wait(ctx, r.Over, time.Duration(20+random.IntN(130))*time.Millisecond)
		r.cutter.freeze(false)
		r.server.Standby().Thaw()
		if ended {
			return err
		}
	}
}

func wait(ctx context.Context, over <-chan error, d time.Duration) (ended bool, err error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case err = <-over:
		return true, err
	case <-ctx.Done():
		return true, ctx.Err()
	case <-timer.C:
		return false, nil
	}
}
