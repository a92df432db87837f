package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver for database/sql
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/sqlstore"
)

// The maximum number of connections of one implementation.
const most = 16

// database is the database that all compared implementations use. Connections are direct, or go through a proxy that
// adds latency.
type database struct {
	proxy *pgproxy.Proxy
	pool  *pgxpool.Pool
	db    *sql.DB
	pgx   *pgxstore.Store
	sql   *sqlstore.Store
}

// connect opens an existing database. The parameter latency is added to each round trip.
func connect(ctx context.Context, dsn string, latency time.Duration) (*database, error) {
	d := &database{}
	if latency > 0 {
		proxy, err := pgproxy.New(dsn)
		if err != nil {
			return nil, err
		}
		proxy.Latency(latency/2, latency-latency/2)
		d.proxy, dsn = proxy, proxy.DSN()
	}
	if err := d.open(ctx, dsn); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *database) open(ctx context.Context, dsn string) error {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return err
	}
	config.MaxConns = most
	if d.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	if d.db, err = sql.Open("pgx", dsn); err != nil {
		return err
	}
	d.db.SetMaxOpenConns(most)
	d.db.SetMaxIdleConns(most)
	if d.pgx, err = pgxstore.New(d.pool, pgxstore.Options{}); err != nil {
		return err
	}
	d.sql, err = sqlstore.Postgres(d.db, sqlstore.Options{})
	return err
}

func (d *database) close() error {
	var err error
	if d.db != nil {
		err = d.db.Close()
	}
	if d.pool != nil {
		d.pool.Close()
	}
	if d.proxy != nil {
		d.proxy.Close()
	}
	return err
}

// reset empties the database and makes the server write a checkpoint, so that a run does not slow the next
// run down.
func (d *database) reset(ctx context.Context) error {
	if _, err := d.pool.Exec(ctx, empty); err != nil {
		return fmt.Errorf("empty the database: %w", err)
	}
	_, err := d.pool.Exec(ctx, "vacuum analyze accounts, counters")
	return err
}

// World is a server with the database of a measurement. The database is used directly and through proxies.
type World struct {
	server, dsn, name string
	byLatency         map[time.Duration]*database
}

// NewWorld creates a database and its tables on the server.
func NewWorld(ctx context.Context, server string) (*World, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	w := &World{server: server, name: "semelbench_" + strconv.Itoa(os.Getpid()), byLatency: map[time.Duration]*database{}}
	if err := w.administer(ctx, "create database "+w.name); err != nil {
		return nil, err
	}
	u.Path = "/" + w.name
	w.dsn = u.String()
	if err := w.prepare(ctx); err != nil {
		return nil, errors.Join(err, w.Close(ctx))
	}
	return w, nil
}

func (w *World) prepare(ctx context.Context) error {
	d, err := w.database(ctx, 0)
	if err != nil {
		return err
	}
	if _, err := d.pgx.Migrate(ctx); err != nil {
		return err
	}
	_, err = d.pool.Exec(ctx, schema)
	return err
}

func (w *World) administer(ctx context.Context, statement string) error {
	db, err := sql.Open("pgx", w.server)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, statement)
	return errors.Join(err, db.Close())
}

func (w *World) database(ctx context.Context, latency time.Duration) (*database, error) {
	if d := w.byLatency[latency]; d != nil {
		return d, nil
	}
	d, err := connect(ctx, w.dsn, latency)
	if err == nil {
		w.byLatency[latency] = d
	}
	return d, err
}

// Close closes all connections and drops the database.
func (w *World) Close(ctx context.Context) error {
	var all []error
	for _, d := range w.byLatency {
		all = append(all, d.close())
	}
	return errors.Join(append(all, w.administer(ctx, "drop database "+w.name+" with (force)"))...)
}
