package pgxstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlstate"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// storeError is an error of the store with its class.
type storeError struct {
	doing string
	class store.Class
	err   error
}

func (e *storeError) Error() string { return fmt.Sprintf("pgxstore: %s: %v", e.doing, e.err) }
func (e *storeError) Unwrap() error { return e.err }

// handlerError is an error of a handler with its class.
type handlerError struct {
	error
	class store.Class
}

func (e *handlerError) Unwrap() error { return e.error }

// judged is the interface of errors that know their class.
type judged interface {
	error
	judgement() store.Class
}

func (e *storeError) judgement() store.Class   { return e.class }
func (e *handlerError) judgement() store.Class { return e.class }

// The class of the error for an argument or statement that cannot be sent. A retry cannot help.
const classOfArguments = store.ClassPermanent

// serverError returns the server's error in err; nil if there is none. If a handler returns a nil *PgError as
// an error, the result is nil.
func serverError(err error) *pgconn.PgError {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return nil
	}
	return server
}

// code returns the SQLSTATE of an error; empty if the server did not send it.
func code(err error) string {
	if server := serverError(err); server != nil {
		return server.Code
	}
	return ""
}

// Classify implements store.TxStore. Classify uses SQLSTATE codes, never the text of an error. If a method of
// an error panics, the error counts as an error of the handler.
func (s *Store) Classify(err error) (class store.Class) {
	defer func() {
		if recover() != nil {
			class = store.ClassRetry
		}
	}()
	var known judged
	var dialing *pgconn.ConnectError
	switch {
	case errors.As(err, &known):
		return known.judgement()
	case errors.As(err, &dialing):
		return store.ClassDown
	case errors.Is(err, pgx.ErrTxClosed), errors.Is(err, pgx.ErrTxCommitRollback):
		return store.ClassAborted
	case code(err) == sqlstate.Unmet:
		return store.ClassPermanent
	case code(err) == sqlstate.ClaimLost:
		return store.ClassClaimLost
	case isOutdated(err):
		return store.ClassContended // the next attempt prepares the statement again
	}
	return s.inner.Classify(err)
}

// isOutdated reports whether the server rejected a prepared statement because it was deallocated or its
// table was changed.
func isOutdated(err error) bool {
	server := serverError(err)
	return server != nil && (server.Code == sqlstate.InvalidStatementName || server.Code == sqlstate.FeatureNotSupported && server.Routine == "RevalidateCachedQuery")
}

// provesRollback reports whether the answer to COMMIT, or to a statement that was sent with COMMIT, proves that
// nothing was committed; see sqlstate.RolledBack.
func provesRollback(err error) bool {
	if state := code(err); len(state) == 5 {
		return sqlstate.RolledBack(state)
	}
	return errors.Is(err, pgx.ErrTxCommitRollback)
}

// serverEnded reports whether an error means that the server itself ended the connection. If the error is the answer to
// a statement before COMMIT, the server has not executed COMMIT, because answers come in order. A pooler that lost its
// server answers with another code.
func serverEnded(err error) bool {
	switch code(err) {
	case "57P01", "57P02", "57P03", "57P05":
		return true
	}
	return false
}

// isRolledBack reports whether an error proves that nothing was committed. The parameter before says whether the error
// was the answer to a statement before COMMIT.
//
// If the connection is still usable, the transaction status in ReadyForQuery shows the outcome. The code of the error
// does not prove anything, because a trigger can choose the code. If the transaction has failed and is still open,
// COMMIT was not executed. If the transaction ended after an ERROR of COMMIT, the transaction was rolled back, because
// PostgreSQL raises no error after it has written the commit. Some poolers that lost their server also send an error
// with the status of an ended transaction. So if the transaction has ended, the error must also name a routine of the
// server.
func (b *batch) isRolledBack(err error, before bool) bool {
	server := serverError(err)
	switch {
	case provesRollback(err), before && serverEnded(err):
		return true
	case server == nil || b.pg.IsClosed():
		return false
	case before:
		return b.pg.TxStatus() == txFailed
	}
	return b.pg.TxStatus() == txNone && server.SeverityUnlocalized == "ERROR" && server.Routine != "" && server.Code != sqlstate.CompletionUnknown
}

// wrapStoreError converts an error of the store's own statements, so that the error does not count as an attempt
// of a message. The cause of an error of the store's own statements ends by itself after a while, or an operator can
// fix it. An error that wraps semel.ErrSchema already contains a remedy.
func (s *Store) wrapStoreError(doing string, err error) error {
	class := s.Classify(err)
	switch {
	case sqlstore.DayGone(s.inner, err):
		class = store.ClassContended
	case class != store.ClassContended:
		class = store.ClassDown
	}
	return &storeError{doing, class, addRemedy(err, !s.usesUserTable && !errors.Is(err, semel.ErrSchema))}
}

// addRemedy adds a remedy to an error of the server. The parameter own is true for the store's own statements.
func addRemedy(err error, own bool) error {
	if remedy := sqlstore.Remedy(err, own); remedy != "" {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return err
}

// The number of errors of the server that a batch remembers. The batch also remembers an error that a savepoint has
// undone, because a handler may return this error later.
const mostHeard = 16

// rememberError adds an error to b.serverErrors if the error came from the server.
func (b *batch) rememberError(err error) {
	server := serverError(err)
	if server == nil || slices.Contains(b.serverErrors, server) {
		return
	}
	if len(b.serverErrors) == mostHeard {
		b.serverErrors = slices.Delete(b.serverErrors, 0, 1)
	}
	b.serverErrors = append(b.serverErrors, server)
}

// ClassifyHandler implements store.TxStatus. The batch remembers the errors of its own statements. So a
// similar error from another server or another transaction counts as an error of the handler.
func (b *batch) ClassifyHandler(_ context.Context, err error) store.Class {
	state := b.state()
	for _, server := range slices.Backward(b.serverErrors) {
		if errors.Is(err, server) {
			return b.store.Classify(server)
		}
	}
	switch {
	case b.brokenBy != nil:
		return b.classifyBroken(err)
	case errors.Is(err, errEnded), errors.Is(err, errBusy):
		return store.ClassPermanent
	case errors.Is(err, pgx.ErrTxClosed) && (b.endAttempted || state != nil):
		return store.ClassAborted
	}
	return b.classifyUnheard(err)
}

// classifyUnheard classifies an error that the batch does not remember, for example because the handler used
// the connection directly.
func (b *batch) classifyUnheard(err error) store.Class {
	switch {
	case code(err) != "" && b.pg.TxStatus() == txFailed:
		return b.store.Classify(err)
	case b.pg.IsClosed() && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled):
		return store.ClassDown
	}
	return store.ClassRetry
}

// classifyBroken classifies an error that follows an earlier error which broke the transaction. If the earlier
// error is lock contention or a lost connection, its class counts, even if the handler returned another error.
func (b *batch) classifyBroken(err error) store.Class {
	class := b.store.Classify(b.brokenBy)
	switch {
	case class == store.ClassContended, class == store.ClassDown, errors.Is(err, b.brokenBy):
		return class
	case errors.Is(err, pgx.ErrTxClosed) && b.state() != nil:
		return store.ClassAborted
	}
	return store.ClassRetry
}
