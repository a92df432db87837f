//go:build unix

package semelpg

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-go/semel/itest/processes"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

var (
	markersFlag = flag.Int("markers", 10_000_000, "how many markers the sampler is measured beside")
	rowsFlag    = flag.Int("rows", 1_000_000, "and how many rows of the inbox")
)

const (
	// What a statement and a scrape may take.
	mostStatement, mostScrape = 50 * time.Millisecond, 5 * time.Millisecond
	// samples are taken of each statement, scrapes as many, so many of them at once.
	samples, scrapes, atOnce = 20, 1000, 20
	// atATime are as many markers as are written in a statement.
	atATime = 500_000
)

const watchedPolicy = `version: 1
listen: %q
stores: {shop: {postgres: {url: "${DATABASE_URL}"}, migrate: true}}
sources: {orders: {file: {path: orders.jsonl, format: json, follow: true}}}
consumers:
  idle: &idle
    from: orders
    store: shop
    identity: {id: "body:/id", source: "const:shop"}
    handler: {sql: {statements: ["select 1"]}}
  audit: *idle
  mail: *idle
  search: *idle
`

// fillMarkers are markers with ids that come in no order, as UUIDs of version 4 do.
const fillMarkers = `insert into semel_markers (scope, id, outcome, version, sum, at)
select 1 + n % 4, '\x01'::bytea || uuid_send(gen_random_uuid()), 1, 1, decode(md5(n::text), 'hex'), now() - n * interval '1 millisecond' from generate_series(1, $1::bigint) n`

// fillRows are rows in all states, of which those of a state lie anywhere in the table.
const fillRows = `insert into semel_inbox (revision, scope, id, conflict, version, surrogate, state, reason, topic, partition, "offset",
  broker_id, type, schema, envelope, payload, received_at, changed_at, due_at, locked_until, token, started, finished, repeated, first_error, last_error)
select 1, 1 + n % 4, '\x00'::bytea || n::text::bytea, '', 0, false, state, case when state = 'BLOCKED' and n % 2 = 0 then 'gap' else '' end, '', 0, n, '', '', '', '{}', repeat('x', 500)::bytea,
  now() - random() * interval '1 day', now(), now() - random() * interval '1 day', case when state = 'IN_PROGRESS' then now() + interval '1 hour' end, 1, 0, 0, 0, '', ''
from (select n, (array['RECEIVED', 'RECEIVED', 'RECEIVED', 'IN_PROGRESS', 'FAILED_RETRYABLE', 'FAILED_RETRYABLE', 'BLOCKED', 'PARKED', 'DEAD_LETTERED', 'COMPLETED'])[1 + floor(random() * 10)::int] as state
  from generate_series(1, $1::bigint) n) all_states`

// sampledServer is a private server with much in it.
type sampledServer struct {
	*services.Server
	db    *sql.DB
	store *sqlstore.Store
	over  int // statements that took more than they may
}

func (s *sampledServer) exec(b *testing.B, query string, args ...any) {
	b.Helper()
	if _, err := s.db.ExecContext(b.Context(), query, args...); err != nil {
		b.Fatal(err)
	}
}

func filled(b *testing.B) *sampledServer {
	b.Helper()
	s := &sampledServer{Server: services.StartPostgres(b, services.Options{Settings: []string{"fsync = off", "synchronous_commit = off", "max_wal_size = '4GB'"}})}
	var err error
	if s.db, err = sql.Open("pgx", s.DSN()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.db.Close() })
	if s.store, err = sqlstore.Postgres(s.db, sqlstore.Options{}); err != nil {
		b.Fatal(err)
	}
	if _, err := s.store.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, consumer := range []string{"billing", "shipping", "stock", "points"} {
		if _, err := s.store.Scope(b.Context(), consumer, "", 0); err != nil {
			b.Fatal(err)
		}
		if err := s.store.Retain(b.Context(), store.Retention{Consumer: consumer, Keep: 24 * time.Hour}); err != nil {
			b.Fatal(err)
		}
	}
	began := time.Now()
	for n := 0; n < *markersFlag; n += atATime {
		s.exec(b, fillMarkers, min(atATime, *markersFlag-n))
	}
	s.exec(b, fillRows, *rowsFlag)
	fmt.Printf("%d markers and %d rows, written in %v\n", *markersFlag, *rowsFlag, time.Since(began).Round(time.Second))
	return s
}

// statements are those of a sample, as the sampler of `semel run` asks them.
// Each returns how many rows were counted.
func (s *sampledServer) statements() (names []string, ask map[string]func(context.Context) (int64, error)) {
	ask = map[string]func(context.Context) (int64, error){
		"reaping": func(ctx context.Context) (int64, error) { _, err := s.store.SampleReaping(ctx); return 0, err },
		"replays": func(ctx context.Context) (int64, error) { _, err := s.store.SampleReplays(ctx); return 0, err },
		"tables":  func(ctx context.Context) (int64, error) { _, err := s.store.SampleTables(ctx); return 0, err },
	}
	for _, state := range []store.RowState{store.StateReceived, store.StateInProgress, store.StateFailedRetryable, store.StateBlocked, store.StateParked, store.StateDeadLettered} {
		ask["rows "+string(state)] = func(ctx context.Context) (rows int64, err error) {
			all, err := s.store.SampleRows(ctx, state)
			for _, of := range all.Consumers {
				rows += of.Rows
			}
			return rows, err
		}
	}
	for name := range ask {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, ask
}

// measure asks each statement the first time, in which it finds how far it comes in 50 ms, and
// then so many times.
func (s *sampledServer) measure(b *testing.B, when string) {
	b.Helper()
	if err := s.db.PingContext(b.Context()); err != nil {
		b.Fatal(err)
	}
	names, ask := s.statements()
	for _, name := range names {
		var all []time.Duration
		ended, counted := 0, int64(0)
		for range samples + 1 {
			began := time.Now()
			n, err := ask[name](b.Context())
			if all = append(all, time.Since(began)); err != nil {
				ended++
			} else {
				counted = n
			}
		}
		first, over := all[0], ""
		all = all[1:]
		slices.Sort(all)
		if ended > 0 || all[samples-1] > mostStatement {
			over = "  TOO LONG"
			s.over++
		}
		fmt.Printf("%-27s %-22s first %7.2f ms, then of %d median %6.2f ms, most %6.2f ms, %5d counted, without an answer %d%s\n",
			when, name, ms(first), samples, ms(all[samples/2]), ms(all[samples-1]), counted, ended, over)
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// restart has the server's own memory empty; the machine's is not.
func (s *sampledServer) restart() {
	s.db.SetMaxIdleConns(0) // those to the old one are of no use
	s.Stop()
	s.Start()
	s.db.SetMaxIdleConns(2)
}

// BenchmarkTheSampler says what each statement of the sampler takes beside 10 million markers
// and a million rows, and what a scrape takes.
func BenchmarkTheSampler(b *testing.B) {
	s := filled(b)
	s.measure(b, "before any statistics")
	s.exec(b, "vacuum analyze semel_inbox")
	s.exec(b, "vacuum analyze semel_markers")
	s.restart()
	s.measure(b, "after a restart")
	s.measure(b, "warm")
	s.exec(b, "alter table semel_inbox set (autovacuum_enabled = false)")
	const churn = `update semel_inbox set state = $1, revision = revision + 1 where state = $2`
	for range 2 { // each row of the state dies twice, under it
		s.exec(b, churn, "IN_PROGRESS", "RECEIVED")
		s.exec(b, churn, "RECEIVED", "IN_PROGRESS")
	}
	s.measure(b, "many dead rows")
	holds, err := s.db.BeginTx(b.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err == nil {
		_, err = holds.ExecContext(b.Context(), "select count(*) from semel_migrations")
	}
	if err != nil {
		b.Fatal(err)
	}
	s.exec(b, churn, "COMPLETED", "RECEIVED")
	s.measure(b, "and a snapshot that holds")
	if err := holds.Rollback(); err != nil {
		b.Fatal(err)
	}
	s.exec(b, "vacuum analyze semel_inbox")
	s.measure(b, "after vacuum")
	s.scraped(b)
	b.ReportMetric(float64(s.over), "statements-too-long")
}

// scraped runs consumers on the store, and asks them for their figures.
func (s *sampledServer) scraped(b *testing.B) {
	b.Helper()
	address, err := proof.FreeAddress()
	if err != nil {
		b.Fatal(err)
	}
	shop := shop{dir: b.TempDir(), dsn: s.DSN(), binary: os.Getenv(built)}
	shop.write(b, "semel.yaml", fmt.Sprintf(watchedPolicy, address))
	shop.write(b, "orders.jsonl", "")
	cmd, log := shop.started(b, "run", "--config", "semel.yaml")
	// An answer is compressed, as Prometheus asks for it. What it takes to read it is the scraper's.
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce, DisableCompression: true}, Timeout: 10 * time.Second}
	asks, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		b.Fatal(err)
	}
	asks.Header.Set("Accept-Encoding", "gzip")
	scrape := func() (time.Duration, error) {
		began := time.Now()
		r, err := client.Do(asks.Clone(asks.Context()))
		if err != nil {
			return 0, err
		}
		defer r.Body.Close()
		_, err = io.Copy(io.Discard, r.Body)
		return time.Since(began), err
	}
	for over := time.Now().Add(time.Minute); ; {
		if _, err = scrape(); err == nil {
			break
		}
		if time.Now().After(over) {
			b.Fatalf("%v: %s", err, log)
		}
	}
	processes.Pause(b.Context(), 5*time.Second) // it has started, and looked at the store
	fmt.Printf("scrapes one by one: %s\n", s.times(b, scrape, 1))
	fmt.Printf("scrapes %d at once: %s\n", atOnce, s.times(b, scrape, atOnce))
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		b.Fatal(err)
	}
	_ = cmd.Wait()
}

// times are those of all scrapes, by so many who ask at once.
func (s *sampledServer) times(b *testing.B, scrape func() (time.Duration, error), by int) string {
	b.Helper()
	var group sync.WaitGroup
	all := make([]time.Duration, scrapes)
	for first := range by {
		group.Go(func() {
			for i := first; i < scrapes; i += by {
				var err error
				if all[i], err = scrape(); err != nil {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
	slices.Sort(all)
	p99 := all[scrapes*99/100-1]
	over := ""
	if p99 > mostScrape {
		over = "  TOO LONG"
	}
	return fmt.Sprintf("median %.2f ms, p99 %.2f ms, most %.2f ms%s", ms(all[scrapes/2]), ms(p99), ms(all[scrapes-1]), over)
}
