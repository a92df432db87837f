package workload

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx" of database/sql
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// Exec runs a statement in the transaction of the current message.
type Exec func(ctx context.Context, statement string, args ...any) error

// Handler is a handler that works with both drivers.
type Handler func(ctx context.Context, exec Exec, m *semel.Message) error

// Consumer is a consumer.Consumer whose transaction type does not matter.
type Consumer interface {
	Run(ctx context.Context) error
	Process(ctx context.Context, m *semel.Message) (consumer.Disposition, error)
	Close(ctx context.Context) error
	Counts() semel.Counts
	Ready() (bool, string)
}

// Options are the options of a consumer.
type Options struct {
	DSN string
	// Connections is the size of the connection pool.
	Connections int
	Handler     Handler
	Config      consumer.Config
	// Plan has the faults to inject. The default seed is 1.
	Plan faults.Plan
	// LookUp, if set, adds a fault on purpose: the store resolves an unknown commit by a plain lookup. See the type
	// trusting.
	LookUp func(ctx context.Context, id []byte) (bool, error)
	// Isolation is the isolation level of transactions. The default is the default of the store.
	Isolation sql.IsolationLevel
	// Outside, if set, is filled with a function that runs a statement on another connection of the
	// consumer's pool.
	Outside *Exec
}

// Driver is a database driver for PostgreSQL.
type Driver struct {
	Name string
	// Open returns a consumer and a function that closes its pool. Open sends nothing to the
	// server.
	Open func(o Options) (Consumer, func(), error)
}

// Drivers returns all drivers.
func Drivers() []Driver {
	return []Driver{{"database/sql", openSQL}, {"pgx", openPGX}}
}

func openSQL(o Options) (Consumer, func(), error) {
	db, err := sql.Open("pgx", o.DSN)
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(o.Connections)
	db.SetMaxIdleConns(o.Connections)
	closeDB := func() { _ = db.Close() }
	if o.Outside != nil {
		*o.Outside = func(ctx context.Context, statement string, args ...any) error {
			_, err := db.ExecContext(ctx, statement, args...)
			return err
		}
	}
	store, err := sqlstore.Postgres(db, sqlstore.Options{Isolation: o.Isolation})
	if err != nil {
		closeDB()
		return nil, nil, err
	}
	c, err := newConsumer(store, o, func(tx *sql.Tx) Exec {
		return func(ctx context.Context, statement string, args ...any) error {
			_, err := tx.ExecContext(ctx, statement, args...)
			return err
		}
	})
	return c, closeDB, err
}

func openPGX(o Options) (Consumer, func(), error) {
	config, err := pgxpool.ParseConfig(o.DSN)
	if err != nil {
		return nil, nil, err
	}
	config.MaxConns = int32(o.Connections)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, nil, err
	}
	if o.Outside != nil {
		*o.Outside = func(ctx context.Context, statement string, args ...any) error {
			_, err := pool.Exec(ctx, statement, args...)
			return err
		}
	}
	store, err := pgxstore.New(pool, pgxstore.Options{Isolation: Levels[o.Isolation]})
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	c, err := newConsumer(store, o, func(tx pgx.Tx) Exec {
		return func(ctx context.Context, statement string, args ...any) error {
			_, err := tx.Exec(ctx, statement, args...)
			return err
		}
	})
	return c, pool.Close, err
}

// Levels has pgx's names of the isolation levels.
var Levels = map[sql.IsolationLevel]pgx.TxIsoLevel{
	sql.LevelReadCommitted: pgx.ReadCommitted, sql.LevelRepeatableRead: pgx.RepeatableRead, sql.LevelSerializable: pgx.Serializable,
}

func newConsumer[Tx any](st store.TxStore[Tx], o Options, exec func(Tx) Exec) (Consumer, error) {
	if o.LookUp != nil {
		st = &trusting[Tx]{TxStore: st, Inbox: st.(store.Inbox), lookUp: o.LookUp, absent: map[string]bool{}}
	}
	return consumer.New(st, func(ctx context.Context, tx Tx, m *semel.Message) error {
		return o.Handler(ctx, exec(tx), m)
	}, o.Config, faults.Of(faults.Plan{Seed: 1}, o.Plan))
}

// Config returns a configuration for fault tests: messages in any order, short delays between retries, no log.
func Config(src source.Source) consumer.Config {
	return consumer.Config{
		Name: "billing", Source: src, Identity: identity.By("header:id"),
		Lanes: consumer.LanesNone, Logger: slog.New(slog.DiscardHandler),
		Retry: consumer.RetryPolicy{InitialDelay: 10 * time.Millisecond, MaxDelay: time.Second},
	}
}

// Migrate creates the tables of the store and the effect log. The effect log has no unique key, so only Semel
// prevents a second effect.
func Migrate(ctx context.Context, dsn string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	store, err := sqlstore.Postgres(db, sqlstore.Options{})
	if err != nil {
		return err
	}
	if _, err := store.Migrate(ctx); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `create table effects (id text not null, worker text not null)`)
	return err
}

// Effect returns a handler that writes the message and the name of the worker into the effect log.
func Effect(worker string) Handler {
	return func(ctx context.Context, exec Exec, m *semel.Message) error {
		return exec(ctx, `insert into effects (id, worker) values ($1, $2)`, m.Identity.ID, worker)
	}
}
