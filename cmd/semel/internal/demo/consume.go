package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // registers the driver
)

// The names of the consumers.
const (
	SettleFirst = "settle-first"
	SettleLast  = "settle-last"
	Semel       = "semel"
)

// Names returns the names of the consumers. The printed table has the consumers in the order of Names.
func Names() []string { return []string{SettleFirst, SettleLast, Semel} }

// Consume runs a consumer in its own process. Consume processes deliveries with the database at path until
// the broker, which is the parent process, has no more messages. The parameters in and out are the pipes to
// the broker.
func Consume(ctx context.Context, name, path string, in io.Reader, out io.Writer) (err error) {
	consume := map[string]func(context.Context, *sql.DB, *client) error{
		SettleFirst: settleFirst, SettleLast: settleLast, Semel: withSemel,
	}[name]
	if consume == nil {
		return fmt.Errorf("%q is no consumer; use one of %s", name, strings.Join(Names(), ", "))
	}
	db, err := openDatabase(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	if err := consume(ctx, db, newClient(in, out, lost)); err != nil && !errors.Is(err, errEnd) {
		return err
	}
	return context.Cause(ctx)
}

// openDatabase opens a database with the same settings for all consumers. SQLite does not flush to disk
// at each commit, so the demo is fast on slow disks. A killed process still loses nothing, because the
// operating system has the written data.
func openDatabase(path string) (*sql.DB, error) {
	escape := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23")
	return sql.Open("sqlite", "file:"+escape.Replace(filepath.ToSlash(path))+
		"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=foreign_keys(1)")
}

// create creates the tables of a consumer.
func create(ctx context.Context, path string) (err error) {
	db, err := openDatabase(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, `
		create table accounts (id text primary key, balance integer not null) strict;
		create table entries (producer text not null, id text not null, account text not null, amount integer not null) strict`)
	return err
}
