package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/semel-go/semel"
)

// session is one write transaction on a connection of its own, from the moment
// it may write until it is over.
type session struct {
	store   *Store
	conn    *sql.Conn
	tx      *sql.Tx
	handle  handle
	cancel  context.CancelFunc
	release func() // of the writer's place; safe to call twice
	killed  atomic.Bool

	mu      sync.Mutex
	gone    bool // guarded by mu: the connection is no longer this session's
	wounded bool // guarded by mu: it was cut
}

// storeError is a failure of the store that no message is to blame for.
type storeError struct {
	doing string
	class semel.Class
	err   error
}

func (e *storeError) Error() string { return fmt.Sprintf("sqlstore: %s: %v", e.doing, e.err) }
func (e *storeError) Unwrap() error { return e.err }

// blameless says what an error of the store's own statements means: waiting
// may mend it or a person must, but it is no message's attempt.
func (s *Store) blameless(doing string, err error) error {
	class := s.Classify(err)
	if class != semel.ClassContended {
		class = semel.ClassDown
	}
	return &storeError{doing, class, s.hint(err)}
}

// hint adds to an error of the driver what to do about it.
func (s *Store) hint(err error) error {
	if remedy := s.dialect.remedy(err); remedy != "" {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return err
}

// open waits for the writer's place and begins a transaction there. ctx ends
// the wait and the call, not the transaction.
func (s *Store) open(ctx context.Context, level sql.IsolationLevel) (*session, error) {
	release, err := s.place(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		release()
		return nil, err
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e := &session{store: s, conn: conn, cancel: cancel, release: release}
	if s.dialect.handle != nil {
		_ = conn.Raw(func(c any) error { e.handle = s.dialect.handle(c); return nil })
	}
	err = e.within(ctx, func() (err error) {
		e.tx, err = conn.BeginTx(own, &sql.TxOptions{Isolation: level})
		return err
	})
	if err != nil {
		e.over(false)
		return nil, err
	}
	return e, nil
}

// within does what database/sql gives no context to, and cuts it off when ctx
// ends. In SQLite nothing of that kind waits for a network.
func (e *session) within(ctx context.Context, do func() error) error {
	if e.store.dialect.handle != nil {
		defer context.AfterFunc(ctx, e.cut)()
	}
	return do()
}

// cut ends the transaction from any goroutine, by the connection if the driver
// shows it, also under a statement.
func (e *session) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return
	}
	e.wounded = true
	e.cancel()
	if e.handle.cut != nil {
		e.handle.cut()
	}
}

// place waits for one of the places of those who may write.
func (s *Store) place(ctx context.Context) (release func(), err error) {
	if s.writers == nil {
		return func() {}, nil
	}
	select {
	case s.writers <- struct{}{}:
		return sync.OnceFunc(func() { <-s.writers }), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the writer before this one: %w", ctx.Err())
	}
}

// over gives the connection back, or throws it away with everything that it
// may still hold, unless the transaction ended cleanly.
func (e *session) over(clean bool) {
	e.mu.Lock()
	e.gone = true
	clean = clean && !e.wounded
	e.mu.Unlock()
	if !clean {
		_ = e.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = e.conn.Close()
	e.cancel()
	e.release()
}

func (e *session) rollback(ctx context.Context) {
	e.over(e.within(ctx, e.tx.Rollback) == nil)
}

// kill ends the transaction from any goroutine: the statement under way is the
// last. Others may write as soon as the database has rolled back.
func (e *session) kill() {
	e.killed.Store(true)
	e.cut()
	e.release()
}

// write runs do in a transaction of its own. It rolls back if do fails.
func (s *Store) write(ctx context.Context, do func(tx *sql.Tx) error) error {
	e, err := s.open(ctx, s.dialect.isolation)
	if err != nil {
		return err
	}
	if err = s.lockAnd(ctx, e.tx, do); err != nil {
		e.rollback(ctx)
		return err
	}
	err = e.within(ctx, e.tx.Commit)
	e.over(err == nil)
	return err
}

// lockAnd writes before it reads: a transaction that reads first could find,
// when it writes, that what it read is old, and fail at once.
func (s *Store) lockAnd(ctx context.Context, tx *sql.Tx, do func(tx *sql.Tx) error) error {
	if _, err := tx.ExecContext(ctx, s.sql["lock"]); err != nil {
		return err
	}
	return do(tx)
}

// isOver reports whether the transaction was ended by someone else.
func isOver(err error) bool { return errors.Is(err, sql.ErrTxDone) }
