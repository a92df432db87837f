package pgxstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel/internal/sqltext"
	"github.com/semel-go/semel/store"
)

// What the server says of a transaction with every answer.
const (
	txNone   = 'I'
	txFailed = 'E'
)

// TxAborted implements store.TxStatus. The connection remembers what the server said
// of the transaction with its last answer.
func (b *batch) TxAborted() bool { return b.ends || b.state() != nil || b.pg.TxStatus() == txFailed }

// AbortCause implements store.TxStatus. It does not know an error that a handler
// met on the connection itself, beside its pgx.Tx.
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

// state is an error if nothing more can be sent in this transaction.
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

var errEnded = &storeError{"the transaction is over", store.ClassPermanent,
	errors.New("the handler committed or rolled back by itself: return nil to commit, an error to roll back")}

// sendable is an error if a handler's statement can't be sent. Where it can, a
// savepoint took back what went wrong before.
//
// One that would end the transaction never is: after a ROLLBACK the next would
// commit by itself, on another connection perhaps if a pooler lies between. From
// then on the batch takes nothing more, whatever the handler makes of the error.
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

// noteError marks an error with which the connection was lost: the store is down.
// Where the handler's own deadline closed it, that is the handler's failure. It
// remembers the first error after which the transaction cannot commit.
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

// reporting is of rows, a row and a batch's results whose error the batch hears of,
// also where the handler does not look.
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
