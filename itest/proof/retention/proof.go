// Package retention proves that old markers go without harm to those who work: a reaper
// removes millions of them while four workers consume, and copies of what it removed come
// all the time. It measures, too, what the index costs by which the reaper finds them, and
// what many markers cost that stay.
package retention

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/pgxstore"
)

// Proof is one run.
type Proof struct {
	// Markers is how many are reaped.
	Markers int
	// Blind plants the fault that workers do not ask for the age of a copy.
	Blind bool
	Seed  uint64
}

// keep is how long markers are kept; what is reaped is older by ten days.
const keep = 30 * 24 * time.Hour

// parkedEach is how many of the old markers are of messages that are parked: one in so many.
const parkedEach = 1000

// run is the state of a proof under way.
type run struct {
	Proof
	proof.Stage
	server *services.Server
	pool   *pgxpool.Pool
	store  *pgxstore.Store
	scope  int64
	born   time.Time // of the first old marker
}

// Run proves on a private server and returns the ledger; judge it with Fault.
// An error says that the run itself failed.
func (p Proof) Run(ctx context.Context, s proof.Stage) (Ledger, error) {
	r := &run{Proof: p, Stage: s, born: time.Now().Add(-keep - 10*24*time.Hour)}
	r.server = services.StartPostgres(s.T, services.Options{Settings: []string{
		"max_connections = 100", "log_lock_waits = on", "deadlock_timeout = 50ms", "shared_buffers = 512MB", "max_wal_size = 4GB", "autovacuum_naptime = 5s"}})
	pool, err := pgxpool.New(ctx, r.server.DSN())
	if err != nil {
		return Ledger{}, err
	}
	defer pool.Close()
	r.pool = pool
	if err := r.prepare(ctx); err != nil {
		return Ledger{}, err
	}
	return r.prove(ctx)
}

// prepare makes the tables and the old markers, some of which are of parked messages.
func (r *run) prepare(ctx context.Context) (err error) {
	if r.store, err = pgxstore.New(r.pool, pgxstore.Options{}); err != nil {
		return err
	}
	if _, err = r.store.Migrate(ctx); err != nil {
		return err
	}
	if r.scope, err = r.store.Scope(ctx, "billing", "shop", 0); err != nil {
		return err
	}
	r.Say("%d old markers are written", r.Markers)
	for _, statement := range []string{
		"create table effects (id text not null)",
		fmt.Sprintf(old, r.scope, r.born.UnixMilli(), r.born.Format(time.RFC3339Nano), parkedEach, r.Markers),
		fmt.Sprintf(oldParked, r.scope),
		"vacuum analyze semel_markers", "analyze semel_inbox",
	} {
		if _, err := r.pool.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%.60s: %w", statement, err)
		}
	}
	return r.store.Retain(ctx, contract.Retention{Consumer: "billing", Keep: keep})
}

// old are markers of UUIDs of version 7, one a millisecond; oldParked the rows of those
// that are parked.
const (
	old = `insert into semel_markers (scope, id, outcome, version, at)
select %d, decode('01' || lpad(to_hex(%d + n), 12, '0') || '7000' || '8000' || lpad(to_hex(n), 12, '0'), 'hex'),
  case when n %% %[4]d = 0 then 3 else 1 end, 0, '%[3]s'::timestamptz + n * interval '1 millisecond'
from generate_series(1, %[5]d) n`
	oldParked = `insert into semel_inbox (revision, scope, id, conflict, version, surrogate, state, reason, topic, partition, "offset",
  broker_id, type, schema, envelope, payload, received_at, changed_at, started, finished, repeated, first_error, last_error)
select 1, scope, id, '', 0, false, 'PARKED', 'permanent failure', '', 0, 0, '', '', '', '{}', 'x', at, at, 1, 1, 0, '', ''
from semel_markers where scope = %d and outcome = 3`
)

// oldID is the id of the n-th old marker.
func (r *run) oldID(n int) string {
	ms := fmt.Sprintf("%012x", r.born.UnixMilli()+int64(n))
	return fmt.Sprintf("%s-%s-7000-8000-%012x", ms[:8], ms[8:], n)
}

func (r *run) oldTime(n int) time.Time { return r.born.Add(time.Duration(n) * time.Millisecond) }

// prove has four workers consume before, while and after the reaper works.
func (r *run) prove(ctx context.Context) (Ledger, error) {
	l := Ledger{Markers: r.Markers}
	crew := &crew{run: r}
	working, stop := context.WithCancel(ctx)
	defer stop()
	var workers sync.WaitGroup
	for n := range 4 {
		workers.Go(func() { crew.work(working, rand.New(rand.NewPCG(r.Seed, uint64(n)))) })
	}
	l.Before = crew.rate(ctx, 10*time.Second)
	r.Say("the reaper begins; %.0f messages a second", l.Before)
	began, from := time.Now(), crew.count()
	err := r.reap(ctx, &l)
	l.Took = time.Since(began).Round(time.Second).Seconds()
	l.While = float64(crew.count()-from) / time.Since(began).Seconds()
	r.Say("%d markers are gone", l.Removed)
	l.After = crew.rate(ctx, 10*time.Second)
	stop()
	workers.Wait()
	if err != nil {
		return l, err
	}
	if crew.failed != nil {
		return l, crew.failed
	}
	return l, r.audit(ctx, crew, &l)
}

// reap removes what is due, as a run does beside its work.
func (r *run) reap(ctx context.Context, l *Ledger) error {
	slice := 500
	for next, idle := (contract.ReapMark{}), 0; idle < 3; {
		if next == (contract.ReapMark{}) {
			if err := r.store.Progressed(ctx, "billing", nil); err != nil {
				return err
			}
			if _, err := r.store.Advance(ctx, "billing"); err != nil {
				return err
			}
		}
		began := time.Now()
		done, err := r.store.Reap(ctx, contract.Reaping{Consumer: "billing", Most: slice, After: next})
		if err != nil {
			return err
		}
		took := time.Since(began)
		l.slices = append(l.slices, took)
		switch { // as consumer.Consumer does
		case took > 20*time.Millisecond:
			slice = max(slice/2, 50)
		case took < 10*time.Millisecond:
			slice = min(slice*2, 10_000)
		}
		l.Removed += int(done.Markers)
		if next = done.Next; next.Done {
			next, idle = contract.ReapMark{}, idle+1
			if done.Markers > 0 {
				idle = 0
			}
		}
	}
	slices.Sort(l.slices)
	l.Slice = milliseconds(l.slices[len(l.slices)*99/100])
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// audit reads what took effect, what stayed, and what the server's log says.
func (r *run) audit(ctx context.Context, c *crew, l *Ledger) error {
	slices.Sort(c.took)
	l.Batch = milliseconds(c.took[len(c.took)*99/100])
	l.Fresh, l.Copies, l.Late, l.Again = c.applied, c.copies, c.late, c.wrong
	for query, to := range map[string]*int{
		"select count(*) - count(distinct id) from effects": &l.Doubled,
		"select count(*) from semel_inbox i join semel_markers m on m.scope = i.scope and m.id = i.id where i.state = 'PARKED' and m.outcome = 3": &l.parked,
		"select count(distinct id) from effects": &l.Applied,
		fmt.Sprintf("select count(*) from semel_markers where at < '%s'", time.Now().Add(-keep).Format(time.RFC3339)): &l.Left,
	} {
		if err := r.pool.QueryRow(ctx, query).Scan(to); err != nil {
			return err
		}
	}
	l.Expected = c.applied
	l.Lost = max(c.applied-l.Applied, 0)
	l.Stuck = r.Markers/parkedEach - l.parked
	l.Waits = r.blame(r.server.Log())
	return nil
}

// blame counts what the server's log says of waits for locks, and of deadlocks, and shows
// it.
func (r *run) blame(log string) (lines int) {
	said := false
	for line := range strings.Lines(log) {
		begins := strings.Contains(line, "deadlock detected") || strings.Contains(line, "still waiting for") || strings.Contains(line, "lock timeout")
		said = begins || said && !strings.Contains(line, "LOG:")
		if said {
			r.Say("%s", strings.TrimSpace(line))
		}
		if begins {
			lines++
		}
	}
	return lines
}
