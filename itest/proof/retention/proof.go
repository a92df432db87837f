// Package retention is a fault test: it checks that the removal of old markers does not disturb consumers. A reaper
// removes millions of old markers while four workers consume. Duplicates of messages whose markers were removed arrive
// all the time. The package also measures the cost of the index for the removal, and the cost of many markers that
// stay.
package retention

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// Proof is the configuration of one run of the fault test.
type Proof struct {
	// Markers is the number of markers to remove.
	Markers int
	// Blind adds a fault that the run must detect: the workers do not check the age of a duplicate. Locks adds another
	// fault: the reaper, which removes old markers, locks the table.
	Blind, Locks bool
	Seed         uint64
}

// The retention. The markers to remove are ten days older than the retention.
const keep = 30 * 24 * time.Hour

// One in parkedEach old markers belongs to a parked message.
const parkedEach = 1000

// run is the state of a running Proof.
type run struct {
	Proof
	proof.Stage
	server *services.Server
	pool   *pgxpool.Pool
	store  *pgxstore.Store // the store of the workers
	reaper *pgxstore.Store // the store of the reaper, with its own connections, so that the server's log identifies the reaper
	pools  []*pgxpool.Pool
	scope  int64
	born   time.Time     // time of the first old marker
	step   time.Duration // time between two old markers

	mutex     sync.Mutex // mutex guards processes
	processes []string
}

// Run runs the fault test on a server of its own and returns the ledger. Call Ledger.Wrong and Ledger.Fault to see
// whether the test succeeded.
func (p Proof) Run(ctx context.Context, s proof.Stage) (l Ledger) {
	r := p.start(ctx, s)
	defer r.close()
	r.scope = proof.Must(r.store.Scope(ctx, "billing", "shop", 0))
	r.Say("%d old markers are written", r.Markers)
	r.execute(ctx,
		"create table effects (id text not null)",
		r.oldMarkersStatement("semel_markers", fmt.Sprintf("case when n %% %d = 0 then 3 else 1 end", parkedEach), 1, r.Markers), // some belong to parked messages
		fmt.Sprintf(oldParked, "semel_markers", r.scope),
		"vacuum analyze semel_markers", "analyze semel_inbox")
	l.Markers = r.Markers
	crew := r.measureBeside(ctx, &l.Pace, func() { r.reap(ctx, &l) })
	r.Say("%d markers are gone", l.Removed)
	l.Stuck = r.Markers/parkedEach - r.weigh(ctx, crew, &l.Pace, "semel_markers")
	r.scan(ctx, &l.Left, "select count(*) from semel_markers where at < $1", time.Now().Add(-keep))
	return l
}

// start starts a server with the tables of a store. The server logs each wait for a lock.
func (p Proof) start(ctx context.Context, s proof.Stage) *run {
	r := &run{Proof: p, Stage: s, born: time.Now().Add(-keep - 10*24*time.Hour).Truncate(time.Millisecond), step: time.Millisecond}
	r.server = services.StartPostgres(s.T, services.Options{Settings: []string{
		"max_connections = 100", "log_lock_waits = on", "deadlock_timeout = 50ms", "shared_buffers = 512MB", "max_wal_size = 4GB", "autovacuum_naptime = 5s"}})
	for _, to := range []**pgxstore.Store{&r.store, &r.reaper} {
		settings := proof.Must(pgxpool.ParseConfig(r.server.DSN()))
		if to == &r.reaper {
			settings.AfterConnect = r.know
		}
		r.pool = proof.Must(pgxpool.NewWithConfig(ctx, settings))
		r.pools = append(r.pools, r.pool)
		*to = proof.Must(pgxstore.New(r.pool, pgxstore.Options{}))
		proof.Must((*to).Migrate(ctx))
	}
	return r
}

func (r *run) close() {
	for _, p := range r.pools {
		p.Close()
	}
}

// execute executes SQL statements and sets the retention of the store.
func (r *run) execute(ctx context.Context, all ...string) {
	for _, statement := range all {
		proof.During(fmt.Sprintf("%.60s", statement), func() { proof.Must(r.pool.Exec(ctx, statement)) })
	}
	proof.Check(r.store.Retain(ctx, store.Retention{Consumer: "billing", Keep: keep}))
}

// scan reads the result of a query.
func (r *run) scan(ctx context.Context, to any, query string, args ...any) {
	proof.Check(r.pool.QueryRow(ctx, query, args...).Scan(to))
}

// oldMarkersStatement returns the statement that writes a range of old markers, with UUIDs of version 7 as ids.
func (r *run) oldMarkersStatement(table, outcome string, from, to int) string {
	return fmt.Sprintf(`insert into %s (scope, id, outcome, version, at)
select %d, decode('01' || lpad(to_hex((%[3]d + n::bigint * %[4]d) / 1000), 12, '0') || '7000' || '8000' || lpad(to_hex(n), 12, '0'), 'hex'),
  %[5]s, 0, timestamptz 'epoch' + (%[3]d + n::bigint * %[4]d) * interval '1 microsecond'
from generate_series(%[6]d, %[7]d) n`, table, r.scope, r.born.UnixMicro(), r.step.Microseconds(), outcome, from, to)
}

// The statement that writes the rows of the parked messages.
const oldParked = `insert into semel_inbox (revision, scope, id, conflict, version, surrogate, state, reason, topic, partition, "offset",
  broker_id, type, schema, envelope, payload, received_at, changed_at, started, finished, repeated, first_error, last_error)
select 1, scope, id, '', 0, false, 'PARKED', 'permanent failure', '', 0, 0, '', '', '', '{}', 'x', at, at, 1, 1, 0, '', ''
from %s where scope = %d and outcome = 3`

// oldID returns the id of the n-th old marker.
func (r *run) oldID(n int) string {
	ms := fmt.Sprintf("%012x", r.oldTime(n).UnixMilli())
	return fmt.Sprintf("%s-%s-7000-8000-%012x", ms[:8], ms[8:], n)
}

func (r *run) oldTime(n int) time.Time { return r.born.Add(time.Duration(n) * r.step) }

// measureBeside calls a function while four workers consume, and measures the workers before, during and after the
// call.
func (r *run) measureBeside(ctx context.Context, p *Pace, do func()) *crew {
	crew := &crew{run: r}
	working, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer stop()
	for n := range 4 {
		workers.Go(func() { crew.work(working, rand.New(rand.NewPCG(r.Seed, uint64(n)))) })
	}
	p.Before = crew.rate(ctx, 10*time.Second)
	r.Say("the reaper begins; %.0f messages a second", p.Before)
	began, from := time.Now(), crew.count()
	r.lock(ctx)
	do()
	p.Took = time.Since(began).Seconds()
	p.While = float64(crew.count()-from) / time.Since(began).Seconds()
	p.After = crew.rate(ctx, 10*time.Second)
	stop()
	workers.Wait()
	slices.Sort(crew.took)
	p.Batch = milliseconds(crew.took[len(crew.took)*99/100])
	p.Fresh, p.Copies, p.Late, p.Again = crew.applied, crew.copies, crew.late, crew.wrong
	proof.Check(crew.failed)
	return crew
}

// reap removes the due markers in the same way as a running consumer.
func (r *run) reap(ctx context.Context, l *Ledger) {
	slice := 500
	for next, idle := (store.ReapMark{}), 0; idle < 3; {
		if next == (store.ReapMark{}) {
			r.advance(ctx)
		}
		began := time.Now()
		done := proof.Must(r.reaper.Reap(ctx, store.Reaping{Consumer: "billing", Most: slice, After: next}))
		took := time.Since(began)
		l.slices = append(l.slices, took)
		switch { // the same reaction as in consumer.Consumer
		case took > 20*time.Millisecond:
			slice = max(slice/2, 50)
		case took < 10*time.Millisecond:
			slice = min(slice*2, 10_000)
		}
		l.Removed += int(done.Markers)
		if next = done.Next; next.Done {
			next, idle = store.ReapMark{}, idle+1
			if done.Markers > 0 {
				idle = 0
			}
		}
	}
	slices.Sort(l.slices)
	l.Slice = milliseconds(l.slices[len(l.slices)*99/100])
}

// advance moves the low-water mark of the retention.
func (r *run) advance(ctx context.Context) {
	proof.Check(r.reaper.Progressed(ctx, "billing", nil))
	proof.Must(r.reaper.Advance(ctx, "billing"))
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// weigh compares the effects with the new messages, and returns how many parked messages still have their markers.
func (r *run) weigh(ctx context.Context, c *crew, p *Pace, markers string) (parked int) {
	r.scan(ctx, &p.Doubled, "select count(*) - count(distinct id) from effects")
	r.scan(ctx, &p.Applied, "select count(distinct id) from effects")
	r.scan(ctx, &parked, "select count(*) from semel_inbox i join "+markers+" m on m.scope = i.scope and m.id = i.id where i.state = 'PARKED' and m.outcome = 3")
	p.Expected = c.applied
	p.Lost = max(c.applied-p.Applied, 0)
	p.Waits = r.blame(r.server.Log())
	return parked
}

// If Locks is set, the method lock locks the table of effects, for longer than a wait that the server logs.
func (r *run) lock(ctx context.Context) {
	if r.Locks {
		proof.Must(r.pools[1].Exec(ctx, "do $$ begin lock table effects in exclusive mode; perform pg_sleep(0.2); end $$"))
	}
}

// know records the process id of a server process that serves the reaper (which removes old markers).
func (r *run) know(_ context.Context, c *pgx.Conn) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.processes = append(r.processes, strconv.FormatUint(uint64(c.PgConn().PID()), 10))
	return nil
}

// The pattern severity matches the start of an event in the server's log. The pattern number matches the process ids in
// an event of the log.
var (
	severity = regexp.MustCompile(`(LOG|WARNING|ERROR|FATAL|PANIC):  `)
	number   = regexp.MustCompile(`\d+`)
)

// blame counts and prints the deadlocks in the server's log. The method also counts and prints the lock waits in which
// the reaper waits, holds the lock, or is in the queue. Other lock waits do not count, because workers also wait for
// each other when a table grows.
func (r *run) blame(log string) (lines int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, entry := range severity.Split(log, -1) {
		waits, _, _ := strings.Cut(entry, "STATEMENT:")
		deadlock := strings.Contains(waits, "deadlock detected")
		if !deadlock && !strings.Contains(waits, "still waiting for") {
			continue
		}
		named := number.FindAllString(waits, -1)
		if deadlock || slices.ContainsFunc(r.processes, func(p string) bool { return slices.Contains(named, p) }) {
			lines++
			r.Say("%s", strings.TrimSpace(entry))
		}
	}
	return lines
}
