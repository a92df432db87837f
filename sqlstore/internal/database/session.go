package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
)

// Session is one write transaction on a connection of its own, from the moment
// it may write until it is over.
type Session struct {
	DB      *DB
	conn    *sql.Conn
	InTx    *sql.Tx
	Handle  handle
	cancel  context.CancelFunc
	release func() // of the writer's place; safe to call twice
	Killed  atomic.Bool
	plans   int64 // the store's count of outdated plans when it began
	// hooked: nothing but commit commits on the connection; commits says that
	// it is under way.
	hooked  bool
	commits atomic.Bool
	// spoiled: the connection may be why the store's own statements fail.
	spoiled bool

	mu      sync.Mutex
	gone    bool // guarded by mu: the connection is no longer this session's
	wounded bool // guarded by mu: it was cut
}

// Open waits for the writer's place and begins a transaction there. ctx ends
// the wait and the call, not the transaction.
func (s *DB) Open(ctx context.Context, level sql.IsolationLevel) (*Session, error) {
	release, err := s.AcquireWriter(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := s.connection(ctx)
	if err != nil {
		release()
		return nil, err
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e := &Session{DB: s, conn: conn, cancel: cancel, release: release, plans: s.outdated.Load()}
	if s.Dialect.handle != nil {
		_ = conn.Raw(func(c any) error { e.Handle = s.Dialect.handle(c); return nil })
	}
	if s.Dialect.commitHook {
		_ = conn.Raw(func(c any) error { e.hooked = hookCommits(c, e.commits.Load); return nil })
	}
	err = e.within(ctx, func() (err error) {
		e.InTx, err = conn.BeginTx(own, &sql.TxOptions{Isolation: level})
		return err
	})
	if err != nil {
		e.Release(false)
		return nil, err
	}
	return e, nil
}

// connection takes one to a database whose file is where it was: SQLite would
// make an empty one where there is none.
func (s *DB) connection(ctx context.Context) (*sql.Conn, error) {
	if err := s.File.Check(); err != nil {
		return nil, err
	}
	return s.Pool.Conn(ctx)
}

// within does what database/sql gives no context to, and cuts it off when ctx
// ends. In SQLite nothing of that kind waits for a network.
func (e *Session) within(ctx context.Context, do func() error) error {
	if e.DB.Dialect.handle != nil {
		defer context.AfterFunc(ctx, e.cut)()
	}
	return do()
}

// cut ends the transaction from any goroutine, by the connection if the driver
// shows it, also under a statement.
func (e *Session) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return
	}
	e.wounded = true
	e.cancel()
	if e.Handle.cut != nil {
		e.Handle.cut()
	}
}

// AcquireWriter waits for one of the places of those who may write.
func (s *DB) AcquireWriter(ctx context.Context) (release func(), err error) {
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

// closeTimeout is how long a server may take to be told that a connection ends.
const closeTimeout = time.Second

// Suspect decides, by an error of the store's own statements, whether the connection is closed.
// A setting that a handler made, such as read only, stays with the connection and lets every
// transaction on it fail. If another connection would meet the error as well, closing this one
// costs one new connection.
func (e *Session) Suspect(ctx context.Context, err error) {
	class := e.DB.Classify(err)
	e.spoiled = ctx.Err() == nil && (class == store.ClassDown || class != store.ClassContended && e.DB.Dialect.Coded(err))
}

// Doubt is Suspect for an error that a handler may have caused. It counts only if the whole
// store is down.
func (e *Session) Doubt(err error) {
	e.spoiled = e.spoiled || e.DB.Classify(err) == store.ClassDown
}

// close closes the connection below database/sql.
func (e *Session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = e.Handle.close(ctx)
}

// Release gives the connection back, or throws it away with everything that it
// may still hold, unless the transaction ended cleanly.
func (e *Session) Release(clean bool) {
	e.mu.Lock()
	e.gone = true
	wounded := e.wounded
	clean = clean && !e.wounded && !e.spoiled && e.plans == e.DB.outdated.Load()
	e.mu.Unlock()
	if e.hooked {
		_ = e.conn.Raw(func(c any) error { unhookCommits(c); return nil })
	}
	switch {
	case e.Handle.close == nil:
	case wounded: // the driver may not have noticed, or be at it
		_ = e.conn.Raw(func(any) error { e.close(); return nil })
	case e.spoiled:
		e.close()
	}
	if !clean {
		_ = e.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = e.conn.Close()
	e.cancel()
	e.release()
}

// CommitTx is the only way to commit. A file that was moved or deleted meanwhile
// may have the commit, and nobody may find it there: whether it happened is then
// not known.
func (e *Session) CommitTx(ctx context.Context) error {
	e.commits.Store(true)
	if err := e.within(ctx, e.InTx.Commit); err != nil {
		return err
	}
	return e.DB.File.Check()
}

// RollbackTx rolls back and gives the connection back.
func (e *Session) RollbackTx(ctx context.Context) {
	e.Release(e.within(ctx, e.InTx.Rollback) == nil)
}

// KillTx ends the transaction from any goroutine: the statement under way is the
// last. Others may write as soon as the database has rolled back.
func (e *Session) KillTx() {
	e.Killed.Store(true)
	e.cut()
	e.release()
}

// Write runs do in a transaction of its own. It rolls back if do fails.
func (s *DB) Write(ctx context.Context, do func(tx *sql.Tx) error) error {
	e, err := s.Open(ctx, s.Dialect.Isolation)
	if err != nil {
		return err
	}
	if err = s.lockAnd(ctx, e.InTx, do); err != nil {
		e.Suspect(ctx, err)
		e.RollbackTx(ctx)
		return err
	}
	err = e.CommitTx(ctx)
	e.Release(err == nil)
	if err != nil && !IsOver(err) && !s.Dialect.RolledBack(err) {
		return &UnknownError{err}
	}
	return err
}

// lockAnd writes before it reads: a transaction that reads first could find,
// when it writes, that what it read is old, and fail at once.
func (s *DB) lockAnd(ctx context.Context, tx *sql.Tx, do func(tx *sql.Tx) error) error {
	if _, err := tx.ExecContext(ctx, s.SQL.Lock); err != nil {
		return err
	}
	return do(tx)
}
