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

// TxAborted implements store.TxStatus. The connection has the transaction status from the last answer of the
// server.
func (b *batch) TxAborted() bool {
	return b.endAttempted || b.state() != nil || b.pg.TxStatus() == txFailed
}

// AbortCause implements store.TxStatus. If a handler used the connection directly instead of its pgx.Tx, AbortCause
// does not know the errors of the handler's statements.
func (b *batch) AbortCause() error {
	b.mutex.Lock()
	ended := !b.released && !b.connectionClosed && b.pg.TxStatus() == txNone
	b.mutex.Unlock()
	switch {
	case b.brokenBy != nil:
		return b.brokenBy
	case ended, b.endAttempted:
		return errEnded
	case b.state() == errBusy:
		return errBusy
	}
	return nil
}

// state returns an error if no further statement can be sent in this transaction.
func (b *batch) state() error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch {
	case b.released, b.pg.TxStatus() == txNone:
		return pgx.ErrTxClosed
	case b.connectionClosed, b.pg.IsClosed():
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

// sendable returns an error if statements of a handler must not be sent. If the transaction is usable, sendable also
// clears brokenBy, because a savepoint has undone any earlier error.
//
// A statement that ends the transaction is never sent. After a ROLLBACK, the next statement would be committed without
// a transaction, and behind a pooler possibly on another connection. After a statement that would end the transaction,
// the batch accepts no further statement, even if the handler ignores the error.
func (b *batch) sendable(texts ...string) error {
	if b.endAttempted {
		return pgx.ErrTxClosed
	}
	if b.endAttempted = slices.ContainsFunc(texts, sqltext.Postgres().Ends); b.endAttempted {
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

// noteError records an error of a handler's statement. A lost connection is recorded as an outage of the store. If the
// handler's own deadline closed the connection, the lost connection is recorded as a failure of the handler. noteError
// keeps the first error after which the transaction cannot commit.
func (b *batch) noteError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	b.outdated = b.outdated || isOutdated(err)
	b.rememberError(err)
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

// reporting is embedded in the types rows and results, so that the batch gets their errors even if the handler ignores
// the errors.
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
