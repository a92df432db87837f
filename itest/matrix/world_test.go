//go:build unix

package matrix

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/rueidis"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/processes"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/redisstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	_ "modernc.org/sqlite"
)

// world is a cell with an open store, in one process.
type world struct {
	cell
	// folder is the path of a folder with the acks, the calls to the other system, and the SQLite database. server is
	// the address of a store other than SQLite.
	folder, server string
	empty          []byte // a database in SQLite without effects
	fault          *fault

	make    func(source.Source) (running, error)
	rows    store.Inbox // nil if the store has no inbox
	effects func(context.Context) (map[string]int, error)
	closes  []func()
}

// running is a consumer whose transactions may have any type.
type running interface {
	Run(context.Context) error
	Work(context.Context, ...int64) error
}

func (w *world) close() {
	for _, f := range w.closes {
		f()
	}
}

// write writes the effect of a message in a transaction. If the effect must be unique and already exists, the function
// returns false.
type write[Tx any] func(ctx context.Context, tx Tx, id string, unique bool) (bool, error)

// use sets w.make to a function that makes consumers with the given store.
func use[Tx any](w *world, st store.TxStore[Tx], keys keystore.Store, put write[Tx]) {
	w.rows, _ = any(st).(store.Inbox)
	plan := faults.Plan{Seed: 1, At: w.fault.at}
	w.make = func(src source.Source) (running, error) {
		c := w.config(src)
		switch w.Strategy {
		case leased:
			return consumer.NewLeased(st, w.leased, c, plan)
		case leasedKey:
			policy := consumer.KeyPolicy{Keep: 30 * 24 * time.Hour, AllowVolatile: "it is a test"}
			return consumer.NewKeyed(faultyKeys{keys, w.fault}, policy, w.leased, c, plan)
		case calling, lookup:
			return consumer.NewCalling(st, w.call, func(ctx context.Context, tx Tx, _ struct{}, m *semel.Message) error {
				_, err := put(ctx, tx, m.Identity.ID, false)
				return errors.Join(err, w.fault.user(faults.AfterEffect))
			}, c, plan)
		}
		return consumer.New(st, func(ctx context.Context, tx Tx, m *semel.Message) error {
			if err := w.fault.user(faults.AfterMark); err != nil {
				return err
			}
			fresh, err := put(ctx, tx, m.Identity.ID, w.Strategy == natural || w.Strategy == businessKey)
			if err == nil && !fresh && w.Strategy == businessKey {
				return semel.Duplicate(errors.New("the effect exists"))
			}
			return errors.Join(err, w.fault.user(faults.AfterEffect))
		}, c, plan)
	}
}

// call charges a message: call writes the message's id and the idempotency key into a file, which represents the other
// system.
func (w *world) call(_ context.Context, m *semel.Message) (none struct{}, err error) {
	if err := w.fault.user(faults.AfterMark); err != nil {
		return none, err
	}
	if err := record(w.folder, "calls", m.Identity.ID+" "+m.IdempotencyKey("charge")); err != nil {
		return none, err
	}
	return none, w.fault.user(faults.AfterCall)
}

func (w *world) leased(ctx context.Context, _ consumer.Call, m *semel.Message) error {
	_, err := w.call(ctx, m)
	return errors.Join(err, w.fault.user(faults.AfterEffect))
}

// lease is the time for which other processes cannot take over claims and leased keys.
const lease = 2 * time.Second

func (w *world) config(src source.Source) consumer.Config {
	c := consumer.Config{
		Name: w.String(), Source: src, Identity: identity.By("header:id"), Lanes: w.Lanes, Workers: 2, Timeout: time.Second, Drain: 5 * time.Second,
		Retry:  consumer.RetryPolicy{InitialDelay: 5 * time.Millisecond, MaxDelay: 50 * time.Millisecond},
		Inbox:  consumer.InboxPolicy{Lease: lease, Poll: 20 * time.Millisecond},
		Logger: slog.New(slog.DiscardHandler),
	}
	if w.Strategy.calls() {
		c.Provider.Window = consumer.WindowAlways
	}
	switch w.Strategy {
	case inbox, received, leased, calling:
		c.Strategy, c.AckOnReceipt = consumer.StrategyInbox, w.Strategy.acksOnReceipt() && src != nil
	case natural:
		c.Strategy, c.NaturalReason = consumer.StrategyNatural, "the effect exists or not"
	case businessKey:
		c.Strategy = consumer.StrategyBusinessKey
	case leasedKey:
		c.Retry.OnExhausted, c.OnConflict, c.OnBadIdentity = consumer.ActionHalt, consumer.ActionHalt, consumer.ActionHalt
	}
	if w.Strategy.acksOnReceipt() || w.Strategy.calls() || w.Kind == frozen {
		c.Workers = 1 // with one worker, the points have a fixed order, and no second call or transaction is in progress
	}
	return c
}

func (w *world) open(ctx context.Context) error {
	switch w.Base {
	case inMemory:
		w.openMemory()
		return nil
	case inSQLite:
		db, err := openFile(filepath.Join(w.folder, "shop.db"))
		if err != nil {
			return err
		}
		st, err := sqlstore.SQLite(db, sqlstore.Options{})
		w.openSQL(db, faultyFile{st, w.fault}, st)
		w.wholeIn(db)
		return err
	case inRedis:
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{w.server}, DisableCache: true})
		if err != nil {
			return err
		}
		w.closes = append(w.closes, client.Close)
		keys, err := redisstore.New(ctx, client, redisstore.Options{})
		use[struct{}](w, nil, keys, nil)
		return err
	}
	proxy, err := pgproxy.New(w.server)
	if err != nil {
		return err
	}
	w.fault.proxy = proxy
	w.closes = append(w.closes, proxy.Close)
	db, err := sql.Open("pgx", proxy.DSN())
	if err != nil {
		return err
	}
	if w.Base == inPostgres {
		st, err := sqlstore.Postgres(db, sqlstore.Options{})
		w.openSQL(db, st, st)
		return err
	}
	return w.openPgx(ctx, db, proxy.DSN())
}

func openFile(path string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(off)&_pragma=foreign_keys(on)")
}

func (w *world) openMemory() {
	st := memstore.New(memstore.Fail(func(operation string) error {
		return w.fault.call(strings.Replace(operation, "claim-", "end-", 1)) // the other stores use the name end for all operations of claims
	}))
	w.effects = func(context.Context) (map[string]int, error) {
		all := map[string]int{}
		for n := range messages {
			all[id(n)], _ = strconv.Atoi(string(st.Get(id(n)))) // without a value, the number of effects is 0
		}
		return all, nil
	}
	use(w, store.TxStore[*memstore.Tx](st), memstore.NewKeys(), func(_ context.Context, tx *memstore.Tx, id string, unique bool) (bool, error) {
		if unique {
			if there, err := tx.Get(id); there != nil || err != nil {
				return false, err
			}
		}
		return true, tx.Add(id, 1)
	})
}

const (
	tables = `create table matrix_effects (cell text not null, id text not null);
		create table matrix_effects_once (cell text not null, id text not null, primary key (cell, id))`
	insert     = "insert into matrix_effects (cell, id) values ($1, $2)"
	insertOnce = "insert into matrix_effects_once (cell, id) values ($1, $2) on conflict do nothing"
	count      = "select id, count(*) from (select * from matrix_effects union all select * from matrix_effects_once) e where cell = $1 group by id"
)

func statement(unique bool) string {
	if unique {
		return insertOnce
	}
	return insert
}

func (w *world) openSQL(db *sql.DB, st store.TxStore[*sql.Tx], keys keystore.Store) {
	w.countIn(db)
	use(w, st, keys, func(ctx context.Context, tx *sql.Tx, id string, unique bool) (bool, error) {
		result, err := tx.ExecContext(ctx, statement(unique), w.String(), id)
		if err != nil {
			return false, err
		}
		n, err := result.RowsAffected()
		return n > 0, err
	})
}

func (w *world) openPgx(ctx context.Context, db *sql.DB, dsn string) error {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	w.countIn(db)
	w.closes = append(w.closes, pool.Close)
	st, err := pgxstore.New(pool, pgxstore.Options{})
	use(w, store.TxStore[pgx.Tx](st), st, func(ctx context.Context, tx pgx.Tx, id string, unique bool) (bool, error) {
		tag, err := tx.Exec(ctx, statement(unique), w.String(), id)
		return tag.RowsAffected() > 0, err
	})
	return err
}

// countIn sets w.effects to a function that counts the effects in a database. w.close closes the database.
func (w *world) countIn(db *sql.DB) {
	w.closes = append(w.closes, func() { _ = db.Close() })
	w.effects = func(ctx context.Context) (map[string]int, error) {
		rows, err := db.QueryContext(ctx, count, w.String())
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		all := map[string]int{}
		for rows.Next() {
			var id string
			var n int
			if err := rows.Scan(&id, &n); err != nil {
				return nil, err
			}
			all[id] = n
		}
		return all, rows.Err()
	}
}

// wholeIn makes w.effects return an error unless the SQLite file is intact and no transaction has left its guard row.
func (w *world) wholeIn(db *sql.DB) {
	counted := w.effects
	w.effects = func(ctx context.Context) (map[string]int, error) {
		var whole string
		err := db.QueryRowContext(ctx, "select integrity_check from pragma_integrity_check where not exists (select 1 from semel_guard)").Scan(&whole)
		if err != nil || whole != "ok" {
			return nil, fmt.Errorf("the file is not whole: %s %w", whole, err)
		}
		return counted(ctx)
	}
}

// live runs the consumer until the source has ended, and works on the rows of the inbox.
func (w *world) live(ctx context.Context, again bool) error {
	c, err := w.make(&shelf{folder: w.folder, again: again, fault: w.fault})
	if err == nil {
		err = c.Run(ctx)
	}
	if err != nil || w.rows == nil || ctx.Err() != nil {
		return err
	}
	if c, err = w.make(nil); err == nil && w.Strategy.acksOnReceipt() {
		err = c.Work(ctx)
	}
	return err
}

// finish runs consumers, one after the other, until all messages are acked and no row waits.
func (w *world) finish(ctx context.Context) error {
	for {
		err := w.live(ctx, false)
		acked, unread := lines(w.folder, "acks")
		waits, unknown := w.waiting(ctx)
		if err = errors.Join(err, unread, unknown); err == nil && len(acked) == messages && waits == "" {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("stuck: acked %v, %s: %w", acked, waits, err)
		}
		processes.Pause(ctx, 20*time.Millisecond)
	}
}

// waiting describes the rows that are not completed.
func (w *world) waiting(ctx context.Context) (string, error) {
	if w.rows == nil {
		return "", nil
	}
	rows, err := w.rows.Rows(ctx, store.RowFilter{Consumer: w.String()})
	var waits []string
	for _, r := range rows {
		if r.State != store.StateCompleted {
			waits = append(waits, fmt.Sprintf("%s is %s (%s %s)", r.Key.ID, r.State, r.Reason, r.LastError))
		}
	}
	return strings.Join(waits, ", "), err
}

// check returns an error if an effect is lost or doubled.
func (w *world) check(ctx context.Context) error {
	called, err := lines(w.folder, "calls")
	if err != nil {
		return err
	}
	calls, keys := map[string]int{}, map[string]int{}
	for line, n := range called {
		id, _, _ := strings.Cut(line, " ")
		calls[id] += n
		keys[id]++
	}
	effects := keys
	if w.Strategy.commits() {
		if effects, err = w.effects(ctx); err != nil {
			return err
		}
	}
	for n := range messages {
		switch id := id(n); {
		case effects[id] == 0:
			err = errors.Join(err, fmt.Errorf("%s is lost", id))
		case effects[id] > 1 || keys[id] > 1:
			err = errors.Join(err, fmt.Errorf("%s is doubled: %d effects, %d keys", id, effects[id], keys[id]))
		case calls[id] > w.mostCalls():
			err = errors.Join(err, fmt.Errorf("%s is doubled: %d calls, at most %d", id, calls[id], w.mostCalls()))
		}
	}
	return err
}

// mostCalls returns the maximum number of calls for a message. A fault may cause a second call, unless the fault
// happens before the first call or after the outcome of the first call was recorded.
func (w *world) mostCalls() int {
	if w.Point.receipt() || w.Point.is(faults.AfterFetch, faults.AfterCommit) {
		return 1
	}
	return 2
}
