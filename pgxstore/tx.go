package pgxstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/semel-go/semel"
)

// tx is the pgx.Tx that a handler gets. The handler cannot end this transaction.
type tx struct {
	batch      *batch
	savepoints int
}

// ErrEndsItself is the error of Commit in a handler. The batch commits the transaction, together with the
// marker, after the handler has returned nil.
var ErrEndsItself = errors.New("pgxstore: a handler's transaction is committed by its batch: return nil to commit, an error to roll back")

func (t *tx) Commit(context.Context) error { return ErrEndsItself }

// Rollback does nothing, so that a deferred Rollback after success causes no harm. To roll back, a handler
// returns an error.
func (t *tx) Rollback(context.Context) error { return pgx.ErrTxClosed }

// Begin sets a savepoint. The returned Tx can roll back to the savepoint.
func (t *tx) Begin(ctx context.Context) (pgx.Tx, error) {
	t.savepoints++
	p := &savepoint{tx: t, name: "semel_" + strconv.Itoa(t.savepoints)}
	if _, err := t.Exec(ctx, "savepoint "+p.name); err != nil {
		return nil, err
	}
	return p, nil
}

func (t *tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.batch.sendable(sql); err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := t.batch.link.conn.Exec(ctx, sql, args...)
	return tag, t.batch.noteError(ctx, err)
}

func (t *tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.batch.sendable(sql); err != nil {
		return failedRows{err}, err
	}
	rows, err := t.batch.link.conn.Query(ctx, sql, args...)
	return &reportingRows{rows, reporting{t.batch, ctx}}, t.batch.noteError(ctx, err)
}

func (t *tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := t.batch.sendable(sql); err != nil {
		return failedRows{err}
	}
	return &reportingRow{t.batch.link.conn.QueryRow(ctx, sql, args...), reporting{t.batch, ctx}}
}

func (t *tx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, from pgx.CopyFromSource) (int64, error) {
	if err := t.batch.sendable(); err != nil {
		return 0, err
	}
	n, err := t.batch.link.conn.CopyFrom(ctx, table, columns, from)
	return n, t.batch.noteError(ctx, err)
}

func (t *tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	texts := make([]string, len(b.QueuedQueries))
	for i, q := range b.QueuedQueries {
		texts[i] = q.SQL
	}
	if err := t.batch.sendable(texts...); err != nil {
		return failedResults{err}
	}
	return &reportingResults{t.batch.link.conn.SendBatch(ctx, b), reporting{t.batch, ctx}}
}

func (t *tx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.batch.sendable(sql); err != nil {
		return nil, err
	}
	statement, err := t.batch.link.conn.Prepare(ctx, name, sql)
	return statement, t.batch.noteError(ctx, err)
}

// LargeObjects panics, because pgx supports large objects only in transactions that it began.
func (t *tx) LargeObjects() pgx.LargeObjects {
	panic("pgxstore: no large objects in a handler's transaction: use the server's functions lo_get, lo_put and lo_from_bytea")
}

func (t *tx) Conn() *pgx.Conn { return t.batch.link.conn }

// savepoint is a part of a handler's transaction that can be rolled back separately.
type savepoint struct {
	*tx
	name  string
	ended bool
}

func (p *savepoint) Commit(ctx context.Context) error { return p.end(ctx, "release savepoint ") }

func (p *savepoint) Rollback(ctx context.Context) error {
	return p.end(ctx, "rollback to savepoint ")
}

func (p *savepoint) end(ctx context.Context, how string) error {
	if p.ended {
		return pgx.ErrTxClosed
	}
	p.ended = true
	if _, err := p.Exec(ctx, how+p.name); err != nil {
		return fmt.Errorf("pgxstore: %s%s: %w", how, p.name, err)
	}
	return nil
}

// failedRows simulates rows, or a single row, that only return an error.
type failedRows struct{ err error }

func (f failedRows) Close()                                       {}
func (f failedRows) Err() error                                   { return f.err }
func (f failedRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (f failedRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (f failedRows) Next() bool                                   { return false }
func (f failedRows) Scan(...any) error                            { return f.err }
func (f failedRows) Values() ([]any, error)                       { return nil, f.err }
func (f failedRows) RawValues() [][]byte                          { return nil }
func (f failedRows) Conn() *pgx.Conn                              { return nil }
func (f failedRows) TypeMap() *pgtype.Map                         { return nil }

// failedResults simulates the results of a pgx batch that was not sent.
type failedResults struct{ err error }

func (f failedResults) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, f.err }
func (f failedResults) Query() (pgx.Rows, error)         { return failedRows(f), f.err }
func (f failedResults) QueryRow() pgx.Row                { return failedRows(f) }
func (f failedResults) Close() error                     { return f.err }
func (f failedResults) Tx() pgx.Tx                       { return nil }

// OneRow converts the result of a guarded statement to the handler's result. OneRow returns an error err unchanged, and
// semel.PreconditionFailed if the statement did not change exactly one row. Queue.ExecOne is the same check for a
// queued statement.
//
//	return pgxstore.OneRow(tx.Exec(ctx, `update … where id = $1 and status = 'awaiting'`, id))
func OneRow(tag pgconn.CommandTag, err error) error {
	if n := tag.RowsAffected(); err == nil && n != 1 {
		err = semel.PreconditionFailed(fmt.Sprintf("changed %d rows, not 1", n))
	}
	return err
}
