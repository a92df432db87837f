package pgxstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// storeError is an error whose meaning the store knows.
type storeError struct {
	doing string
	class store.Class
	err   error
}

func (e *storeError) Error() string { return fmt.Sprintf("pgxstore: %s: %v", e.doing, e.err) }
func (e *storeError) Unwrap() error { return e.err }

// handlerError is an error of a handler with what it means for its batch.
type handlerError struct {
	error
	class store.Class
}

func (e *handlerError) Unwrap() error { return e.error }

// judged is an error whose class is known.
type judged interface {
	error
	judgement() store.Class
}

func (e *storeError) judgement() store.Class   { return e.class }
func (e *handlerError) judgement() store.Class { return e.class }

// classOfArguments: an argument or a statement that can't be sent never can.
const classOfArguments = store.ClassPermanent

// PostgreSQL's codes: https://www.postgresql.org/docs/current/errcodes-appendix.html
const (
	codeNotSupported = "0A000"
	codeNoStatement  = "26000"
	codeUnique       = "23505"
	codeUnknown      = "40003"
	codeCanceled     = "57014"
	codeUnmet        = "SM001" // raised by {prefix}expect
	codeClaimLost    = "SM002" // raised by {prefix}stand
)

// serverError is the server's error in err, nil if there is none: a nil of its type,
// which a function of the user's may return as an error, is nothing that it said.
func serverError(err error) *pgconn.PgError {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return nil
	}
	return server
}

// code is the server's code of an error; empty if it is none of the server's.
func code(err error) string {
	if server := serverError(err); server != nil {
		return server.Code
	}
	return ""
}

// Classify implements store.TxStore. It goes by the server's codes, never by
// the text of an error. One that panics when it is looked into is a handler's own.
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
	case code(err) == codeUnmet:
		return store.ClassPermanent
	case code(err) == codeClaimLost:
		return store.ClassClaimLost
	case outdated(err):
		return store.ClassContended // the next try prepares it anew
	}
	return s.inner.Classify(err)
}

// outdated reports whether the server no longer takes a prepared statement:
// somebody deallocated it, or its table was changed.
func outdated(err error) bool {
	server := serverError(err)
	return server != nil && (server.Code == codeNoStatement || server.Code == codeNotSupported && server.Routine == "RevalidateCachedQuery")
}

// definite reports whether an answer to COMMIT, or to a statement sent with it,
// proves that nothing was committed: an error of the server does. A server that
// goes, a broken one, and a pooler that lost its server answer with an error,
// too, and do not know.
func definite(err error) bool {
	state := code(err)
	if len(state) != 5 {
		return errors.Is(err, pgx.ErrTxCommitRollback)
	}
	switch state[:2] {
	case "08", "58", "XX", "F0":
		return false
	case "57":
		return state == codeCanceled
	}
	return state != codeUnknown
}

// ended reports whether the server ended the connection itself. In the place of
// the answer to a statement before COMMIT that proves that COMMIT was not
// reached: answers come in order. A pooler that lost its server says something
// else.
func ended(err error) bool {
	switch code(err) {
	case "57P01", "57P02", "57P03", "57P05":
		return true
	}
	return false
}

// undone reports whether an error proves that nothing was committed; before says
// that it came in the place of the answer to a statement before COMMIT.
//
// Where the connection goes on, the server has said with ReadyForQuery what
// became of the transaction, and the code of the error, which a trigger can
// choose, says nothing. A transaction that has failed and is still open never
// came to its COMMIT. One that is over after an ERROR of COMMIT was rolled back:
// PostgreSQL raises none after it has written the commit. Some poolers answer
// with an error and that word, too, when they have lost their server, so that
// the second proof needs an error that names the server's own routine.
func (b *batch) undone(err error, before bool) bool {
	server := serverError(err)
	switch {
	case definite(err), before && ended(err):
		return true
	case server == nil || b.pg.IsClosed():
		return false
	case before:
		return b.pg.TxStatus() == txFailed
	}
	return b.pg.TxStatus() == txNone && server.SeverityUnlocalized == "ERROR" && server.Routine != "" && server.Code != codeUnknown
}

// blameless says what an error of the store's own statements means: waiting
// may mend it or a person must, but it is no message's attempt.
//
// A fault of the schema that was found says itself what to do.
func (s *Store) blameless(doing string, err error) error {
	class := s.Classify(err)
	switch {
	case sqlstore.DayGone(s.inner, err):
		class = store.ClassContended
	case class != store.ClassContended:
		class = store.ClassDown
	}
	return &storeError{doing, class, hint(err, !s.adopted && !errors.Is(err, semel.ErrSchema))}
}

// hint adds to an error of the server what to do about it; own says that the
// statement was the store's.
func hint(err error, own bool) error {
	if remedy := sqlstore.Remedy(err, own); remedy != "" {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return err
}

// mostHeard is how many errors of the server a batch remembers: those of
// savepoints too, which a handler may return later.
const mostHeard = 16

// hear remembers an error of the server.
func (b *batch) hear(err error) {
	server := serverError(err)
	if server == nil || slices.Contains(b.heard, server) {
		return
	}
	if len(b.heard) == mostHeard {
		b.heard = slices.Delete(b.heard, 0, 1)
	}
	b.heard = append(b.heard, server)
}

// ClassifyHandler implements store.TxStatus. The batch hears every
// error of its own statements, so an error of another server, of a provider or of
// another transaction is the handler's own, whatever it looks like.
func (b *batch) ClassifyHandler(_ context.Context, err error) store.Class {
	state := b.state()
	for _, server := range slices.Backward(b.heard) {
		if errors.Is(err, server) {
			return b.store.Classify(server)
		}
	}
	switch {
	case b.brokenBy != nil:
		return b.classifyBroken(err)
	case errors.Is(err, errEnded), errors.Is(err, errBusy):
		return store.ClassPermanent
	case errors.Is(err, pgx.ErrTxClosed) && (b.ends || state != nil):
		return store.ClassAborted
	}
	return b.classifyUnheard(err)
}

// classifyUnheard judges an error while the transaction was broken by something
// that the batch did not hear, on the connection itself beside the pgx.Tx.
func (b *batch) classifyUnheard(err error) store.Class {
	switch {
	case code(err) != "" && b.pg.TxStatus() == txFailed:
		return b.store.Classify(err)
	case b.pg.IsClosed() && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled):
		return store.ClassDown
	}
	return store.ClassRetry
}

// classifyBroken judges an error beside the one that broke the transaction.
// Contention and a lost connection speak for the batch also where the handler
// returned something else.
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
