// Package postgresfaults runs consumers on PostgreSQL servers that fail in different ways, with both drivers. Each test
// checks the outcome of each message, that attempts are counted only for the faulty message, and that the consumer
// works again after the fault.
package postgresfaults

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
	"github.com/semel-go/semel/store"
)

const (
	// The time limit for all events that a test waits for.
	patience = 3 * time.Minute
	// A timeout whose end tests wait for. Successful work takes less time, even on a busy machine.
	brief = 2 * time.Second
)

// world is a running consumer and its server.
type world struct {
	t        testing.TB
	db       *sql.DB // connection to the server that does not go through the consumer's proxy
	inlet    *workload.Inlet
	consumer workload.Consumer
	over     chan error

	mu       sync.Mutex
	events   []semel.Event
	attempts map[string][]int // by message id: the value of Attempt in each run of the handler
}

// settings contains the settings of a consumer and its server. The zero value means a consumer that writes the effect
// log.
type settings struct {
	driver workload.Driver
	// The field dsn is the connection string for checks and preparation. The field through is the connection string for
	// the consumer; "" means dsn.
	dsn, through string
	handler      workload.Handler
	change       func(*consumer.Config)
	isolation    sql.IsolationLevel
	// The size of the connection pool; 0 means two more than the number of workers.
	connections int
	outside     *workload.Exec
}

// eachDriver runs a test with both drivers in parallel.
func eachDriver(t *testing.T, test func(t *testing.T, driver workload.Driver)) {
	for _, driver := range workload.Drivers() {
		t.Run(driver.Name, func(t *testing.T) {
			t.Parallel()
			test(t, driver)
		})
	}
}

// look opens a database for checks and preparation.
func look(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(-1) // no idle connections, because a restart of the server would break them
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// migrateDatabase creates Semel's tables and the tables of the test in a database.
func migrateDatabase(t testing.TB, dsn string, statements ...string) string {
	t.Helper()
	if err := workload.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	db := look(t, dsn)
	for _, s := range statements {
		exec(t, db, s)
	}
	return dsn
}

func exec(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// begin starts a consumer in a migrated database. The consumer is stopped at the end of the test.
func begin(t testing.TB, s settings) *world {
	t.Helper()
	w := &world{t: t, inlet: workload.NewInlet(), over: make(chan error, 1), attempts: map[string][]int{}, db: look(t, s.dsn)}
	c := workload.Config(w.inlet)
	c.Workers, c.Batch.MaxSize = 2, 100
	c.Observers = []semel.Observer{w}
	if s.change != nil {
		s.change(&c)
	}
	if s.handler == nil {
		s.handler = workload.Effect("here")
	}
	if s.through == "" {
		s.through = s.dsn
	}
	handler := func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
		w.mu.Lock()
		w.attempts[m.Identity.ID] = append(w.attempts[m.Identity.ID], m.Attempt)
		w.mu.Unlock()
		return s.handler(ctx, exec, m)
	}
	if s.connections == 0 {
		s.connections = c.Workers + 2
	}
	consumer, closePool, err := s.driver.Open(workload.Options{
		DSN: s.through, Connections: s.connections, Handler: handler, Config: c, Isolation: s.isolation, Outside: s.outside})
	if err != nil {
		t.Fatal(err)
	}
	w.consumer = consumer
	go func() { w.over <- consumer.Run(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		defer closePool()
		w.end()
	})
	return w
}

// end lets the consumer finish its work and stops it.
func (w *world) end() {
	w.t.Helper()
	w.inlet.End()
	select {
	case err := <-w.over:
		w.over <- err
		if err != nil {
			w.t.Errorf("the consumer ended with %v", err)
		}
	case <-time.After(patience):
		w.t.Errorf("the consumer does not end; %+v", w.consumer.Counts())
	}
}

// Observe implements semel.Observer.
func (w *world) Observe(e semel.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// countEvents counts the events of the given kind whose error contains the text.
func (w *world) countEvents(kind semel.EventKind, text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, e := range w.events {
		if e.Kind == kind && (text == "" || e.Err != nil && strings.Contains(e.Err.Error(), text)) {
			n++
		}
	}
	return n
}

func waitUntil(t testing.TB, what string, condition func() bool) {
	t.Helper()
	if !services.Within(patience, condition) {
		t.Fatalf("waited %s until %s", patience, what)
	}
}

// waitRetention waits until the writes of the consumer's start are committed, so that the next commit belongs to
// a message.
func (w *world) waitRetention() {
	w.t.Helper()
	waitUntil(w.t, "how long markers are kept is written down", func() bool {
		return queryOne[int](w.t, w.db, "select count(*) from semel_retention") == 1
	})
}

// untilTold waits for an event of the given kind whose error contains the text.
func (w *world) untilTold(kind semel.EventKind, text string) {
	w.t.Helper()
	waitUntil(w.t, fmt.Sprintf("the consumer tells %q with %q", kind, text), func() bool { return w.countEvents(kind, text) > 0 })
}

// makeIDs returns n ids that consist of the name and a number.
func makeIDs(name string, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint(name, i))
	}
	return ids
}

func (w *world) deliver(ids ...string) {
	var all []*semel.Message
	for _, id := range ids {
		all = append(all, message(id, `{}`))
	}
	w.inlet.Put(all...)
}

func message(id, body string) *semel.Message {
	m := workload.Message(0)
	m.Headers[0].Value, m.Body = []byte(id), []byte(body)
	return m
}

// waitSettled waits until all messages are acked, and checks that each message was acked once.
func (w *world) waitSettled(ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		waitUntil(w.t, id+" is settled", func() bool { _, n := w.inlet.Settled(id); return n > 0 })
		if kind, n := w.inlet.Settled(id); kind != semel.Ack || n != 1 {
			w.t.Errorf("%s is settled %d times, as %d", id, n, kind)
		}
	}
}

// expectUnacked checks that none of the messages is acked.
func (w *world) expectUnacked(ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		if kind, n := w.inlet.Settled(id); n != 0 {
			w.t.Errorf("%s is settled %d times, as %d", id, n, kind)
		}
	}
}

// waitApplied waits until all messages are acked. The method checks that each message has one effect, a marker
// with the outcome applied, and no counted attempt.
func (w *world) waitApplied(ids ...string) {
	w.t.Helper()
	w.waitSettled(ids...)
	// One query checks all messages, because each query needs a new connection.
	bad := queryOne[string](w.t, w.db, `
		select coalesce(string_agg(format('%s: %s effects, marker %s', i.id, e.n, m.outcome), '; '), '')
		from unnest($1::text[]) i (id)
		cross join lateral (select count(*) n from effects e where e.id = i.id) e
		left join semel_markers m on m.id = '\x00'::bytea || convert_to(i.id, 'UTF8')
		where e.n <> 1 or m.outcome is distinct from 1`, ids)
	if bad != "" {
		w.t.Errorf("not one effect and a marker that says applied: %s", bad)
	}
	for _, id := range ids {
		w.mu.Lock()
		for _, attempt := range w.attempts[id] {
			if attempt != 1 {
				w.t.Errorf("%s was charged with an attempt: %v", id, w.attempts[id])
			}
		}
		w.mu.Unlock()
	}
}

// waitParked waits until a message is acked. The method checks that the message is parked with the given reason,
// has no effect, and has an error that contains the text.
func (w *world) waitParked(id, reason, text string) {
	w.t.Helper()
	w.waitSettled(id)
	if effects, marker := w.countEffects(id), w.marker(id); effects != 0 || marker != int(store.Parked) {
		w.t.Errorf("%s has %d effects and the marker %d, want none, parked", id, effects, marker)
	}
	var why, says string
	if err := w.db.QueryRow(`select reason, last_error from semel_inbox where id = $1`, storedID(id)).Scan(&why, &says); err != nil {
		w.t.Errorf("the row of %s: %v", id, err)
	}
	if why != reason || !strings.Contains(says, text) {
		w.t.Errorf("%s is parked for %q with %q, want %q with %q", id, why, says, reason, text)
	}
}

func (w *world) countEffects(id string) int {
	w.t.Helper()
	return queryOne[int](w.t, w.db, `select count(*) from effects where id = $1`, id)
}

func (w *world) marker(id string) int {
	w.t.Helper()
	return queryOne[int](w.t, w.db, `select coalesce(max(outcome), 0) from semel_markers where id = $1`, storedID(id))
}

// attemptsOf returns the attempt number of each run of the handler for a message.
func (w *world) attemptsOf(id string) []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]int(nil), w.attempts[id]...)
}

// storedID returns the bytes that the tables contain for a short id.
func storedID(id string) []byte { return append([]byte{0}, id...) }

// queryOne returns the value of a query that returns a single value.
func queryOne[T any](t testing.TB, db *sql.DB, query string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRow(query, args...).Scan(&v); err != nil {
		t.Errorf("%s: %v", query, err)
	}
	return v
}
