package pgxstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel/internal/ended"
	"github.com/semel-go/semel/internal/sqltext"
	"github.com/semel-go/semel/store"
)

// The transaction status that the server sends with every answer.
const (
	txNone   = 'I'
	txFailed = 'E'
)

// TxAborted implements store.TxStatus. The connection keeps the transaction status of the last
// answer.
func (b *batch) TxAborted() bool { return b.ends || b.state() != nil || b.pg.TxStatus() == txFailed }

// AbortCause implements store.TxStatus. AbortCause does not know errors of statements that a
// handler sent on the connection directly instead of through its pgx.Tx.
func (b *batch) AbortCause() error {
	b.mutex.Lock()
	ended := !b.over && !b.cutOff && b.pg.TxStatus() == txNone
	b.mutex.Unlock()
	switch {
	case b.brokenBy != nil:
		return b.brokenBy
	case ended, b.ends:
		return errEnded
	case b.state() == errBusy:
		return errBusy
	}
	return nil
}

// state returns an error if nothing more can be sent in this transaction.
func (b *batch) state() error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch {
	case b.over, b.pg.TxStatus() == txNone:
		return pgx.ErrTxClosed
	case b.cutOff, b.pg.IsClosed():
		return errCut
	case b.pg.IsBusy():
		return errBusy
	}
	return nil
}

var errBusy = &storeError{"the connection is busy", store.ClassPermanent,
	errors.New("rows of an earlier query are open: read them to the end or close them before the next statement and before the handler returns")}

var errCut = fmt.Errorf("pgxstore: the connection of this batch is closed: %w", pgx.ErrTxClosed)

var errEnded = &storeError{"the transaction has ended", store.ClassPermanent,
	ended.Err}

// sendable returns an error if a handler's statements must not be sent. If they may be, and
// the transaction is usable, an earlier error was undone by a savepoint.
//
// Statements that end the transaction are never sent: after a ROLLBACK the next statement
// would commit on its own, behind a pooler maybe on another connection. After such a statement
// the batch accepts nothing more, whatever the handler does with the error.
func (b *batch) sendable(texts ...string) error {
	if b.ends {
		return pgx.ErrTxClosed
	}
	if b.ends = slices.ContainsFunc(texts, sqltext.Postgres().Ends); b.ends {
		return errEnded
	}
	if err := b.state(); err != nil {
		return err
	}
	if b.pg.TxStatus() != txFailed {
		b.brokenBy = nil
	}
	return nil
}

// noteError records an error of a handler's statement. noteError marks a lost connection as a
// store that is down, unless the handler's own deadline closed the connection: that is a
// failure of the handler. noteError keeps the first error after which the transaction cannot
// commit.
func (b *batch) noteError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	b.outdated = b.outdated || outdated(err)
	b.hear(err)
	closed, by := b.pg.IsClosed(), err
	switch lost := closed && code(err) == ""; {
	case lost && ctx.Err() == nil:
		err = &storeError{"the connection is lost", store.ClassDown, err}
		by = err
	case lost:
		by = &handlerError{err, store.ClassRetry}
	}
	if b.brokenBy == nil && (closed || b.pg.TxStatus() == txFailed) {
		b.brokenBy = by
	}
	return err
}

// reporting is embedded in rows and results that pass their errors to the batch, even if the
// handler ignores them.
type reporting struct {
	batch *batch
	ctx   context.Context
}

type reportingRows struct {
	pgx.Rows
	reporting
}

func (r *reportingRows) Next() bool {
	more := r.Rows.Next()
	if !more {
		_ = r.Err()
	}
	return more
}

func (r *reportingRows) Close() {
	r.Rows.Close()
	_ = r.Err()
}

func (r *reportingRows) Err() error { return r.batch.noteError(r.ctx, r.Rows.Err()) }

type reportingRow struct {
	pgx.Row
	reporting
}

func (r *reportingRow) Scan(to ...any) error { return r.batch.noteError(r.ctx, r.Row.Scan(to...)) }

type reportingResults struct {
	pgx.BatchResults
	reporting
}

func (r *reportingResults) Exec() (pgconn.CommandTag, error) {
	tag, err := r.BatchResults.Exec()
	return tag, r.batch.noteError(r.ctx, err)
}

func (r *reportingResults) Query() (pgx.Rows, error) {
	rows, err := r.BatchResults.Query()
	return &reportingRows{rows, r.reporting}, r.batch.noteError(r.ctx, err)
}

func (r *reportingResults) QueryRow() pgx.Row {
	return &reportingRow{r.BatchResults.QueryRow(), r.reporting}
}

func (r *reportingResults) Close() error { return r.batch.noteError(r.ctx, r.BatchResults.Close()) }
