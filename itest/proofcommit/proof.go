// Package proofcommit proves that a lost COMMIT neither loses nor doubles an
// effect. Two consumers of one name take the same messages from the same
// PostgreSQL server. A proxy cuts the connection at COMMIT, at the request or
// at the reply, thousands of times; in between the synchronous standby is
// frozen, so that a COMMIT waits on the server while its client is cut off.
package proofcommit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/itest/pgproxy"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/workload"
)

// Direction is what of a COMMIT is lost.
type Direction string

// The directions.
const (
	Request Direction = "request"
	Reply   Direction = "reply"
)

// Proof is one run.
type Proof struct {
	Driver    workload.Driver
	Direction Direction
	// Cuts is how many commits of effects are cut.
	Cuts int
	// LookUp plants the fault that a look-up resolves an unknown commit.
	LookUp bool
	Seed   uint64
	// Progress gets a line now and then.
	Progress io.Writer
}

// workers of each of the two consumers, and the most messages of a batch.
const (
	workers = 8
	most    = 5
)

// share is how many of the commits are cut while cuts are left.
const share = 0.6

// run is the state of a proof under way.
type run struct {
	Proof
	server  *services.Server
	proxy   *pgproxy.Proxy
	cutter  *cutter
	feed    *workload.Feed
	db      *sql.DB // straight to the server
	unknown atomic.Int64
}

// Run proves on a private server and returns the ledger; judge it with Fault.
// An error says that the run itself failed.
func (p Proof) Run(ctx context.Context, t testing.TB) (Ledger, error) {
	r := &run{Proof: p, cutter: newCutter(p.Cuts, share, p.Seed)}
	r.feed = &workload.Feed{Enough: r.cutter.enough, Seed: p.Seed}
	r.server = services.StartPostgres(t, services.Options{Standby: true, Settings: []string{"max_connections = 200"}})
	if err := workload.Migrate(ctx, r.server.DSN()); err != nil {
		return Ledger{}, err
	}
	proxy, err := pgproxy.New(r.server.DSN())
	if err != nil {
		return Ledger{}, err
	}
	defer proxy.Close()
	r.proxy = proxy
	r.cutter.install(proxy, p.Direction)
	if r.db, err = sql.Open("pgx", r.server.DSN()); err != nil {
		return Ledger{}, err
	}
	defer func() { _ = r.db.Close() }()
	return r.prove(ctx)
}

func (r *run) prove(ctx context.Context) (Ledger, error) {
	began := time.Now()
	ledger := Ledger{Driver: r.Driver.Name, Direction: r.Direction}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	over := make(chan error, 2)
	var sources []*workload.Source
	var consumers []workload.Consumer
	for n, name := range []string{"first", "second"} {
		source := r.feed.Source(uint64(n))
		consumer, closePool, err := r.Driver.Open(r.options(name, source))
		if err != nil {
			return ledger, err
		}
		defer closePool()
		sources, consumers = append(sources, source), append(consumers, consumer)
	}
	for _, c := range consumers {
		go func() { over <- c.Run(ctx) }()
	}
	var failed error
	for range consumers {
		failed = errors.Join(failed, r.disturb(ctx, over))
		if failed != nil {
			stop()
		}
	}
	if failed != nil {
		return ledger, failed
	}
	ledger.Seconds = time.Since(began).Seconds()
	ledger.Expected, ledger.Unknown = r.feed.Issued(), int(r.unknown.Load())
	ledger.Cuts, ledger.Waiting = r.cutter.made()
	for i, c := range consumers {
		ledger.Duplicates += int(c.Counts().Duplicates)
		ledger.Unsettled += ledger.Expected - sources[i].Settled(semel.Ack)
	}
	return ledger, r.audit(ctx, &ledger)
}

func (r *run) options(name string, source contract.Source) workload.Options {
	c := workload.Config(source)
	c.Workers, c.Batch.Most, c.Hold = workers, most, time.Second
	c.MaxUnsettled = contract.Bound{Messages: 512, Bytes: 1 << 20}
	c.Observers = []semel.Observer{r}
	o := workload.Options{DSN: r.proxy.DSN(), Connections: workers + 2, Handler: workload.Effect(name), Config: c}
	if r.LookUp {
		o.LookUp = r.lookUp
	}
	return o
}

// Observe implements semel.Observer.
func (r *run) Observe(e semel.Event) {
	if e.Kind == semel.EventUnknown {
		r.unknown.Add(1)
	}
}

// lookUp is what the planted fault asks: is the marker there?
func (r *run) lookUp(ctx context.Context, id []byte) (there bool, err error) {
	// An id is stored behind a byte that says how.
	err = r.db.QueryRowContext(ctx, `select exists (select from semel_markers where id = '\x00'::bytea || $1)`, id).Scan(&there)
	return there, err
}

// disturb freezes the standby again and again until a consumer is over.
func (r *run) disturb(ctx context.Context, over <-chan error) error {
	random := rand.New(rand.NewPCG(r.Seed, 4))
	told := time.Now()
	for {
		if ended, err := wait(ctx, over, time.Duration(200+random.IntN(300))*time.Millisecond); ended {
			return err
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			cuts, waiting := r.cutter.made()
			fmt.Fprintf(r.Progress, "%s, %s lost: %d of %d cuts, %d of them under a waiting COMMIT\n", r.Driver.Name, r.Direction, cuts, r.Cuts, waiting)
		}
		if r.cutter.enough() {
			continue
		}
		r.cutter.freeze(true)
		r.server.Standby().Freeze()
		ended, err := wait(ctx, over, time.Duration(20+random.IntN(130))*time.Millisecond)
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
