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

// Session is a write transaction on its own connection.
type Session struct {
	DB      *DB
	conn    *sql.Conn
	InTx    *sql.Tx
	Handle  handle
	cancel  context.CancelFunc
	release func() // releases the writer's slot; safe to call twice
	Killed  atomic.Bool
	plans   int64 // DB.outdated when the session began
	// hooked: the commit hook rejects every commit while commits is false.
	hooked  bool
	commits atomic.Bool
	// spoiled: the state of the connection may be the reason why the store's own statements
	// fail.
	spoiled bool

	mu      sync.Mutex
	gone    bool // guarded by mu: the connection was released
	wounded bool // guarded by mu: the connection was cut
}

// Open waits for a writer's slot and begins a transaction. ctx limits the wait and the call,
// but not the transaction.
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

// connection returns a connection if the database file is still in its place. Otherwise SQLite
// would create an empty file.
func (s *DB) connection(ctx context.Context) (*sql.Conn, error) {
	if err := s.File.Check(); err != nil {
		return nil, err
	}
	return s.Pool.Conn(ctx)
}

// within calls do, and closes the connection when ctx ends. within is for functions of
// database/sql that take no context. In SQLite such functions never wait for a network.
func (e *Session) within(ctx context.Context, do func() error) error {
	if e.DB.Dialect.handle != nil {
		defer context.AfterFunc(ctx, e.cut)()
	}
	return do()
}

// cut ends the transaction from any goroutine, even during a statement. cut closes the
// connection if the driver exposes it.
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

// AcquireWriter waits for a writer's slot.
func (s *DB) AcquireWriter(ctx context.Context) (release func(), err error) {
	if s.writers == nil {
		return func() {}, nil
	}
	select {
	case s.writers <- struct{}{}:
		return sync.OnceFunc(func() { <-s.writers }), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another writer: %w", ctx.Err())
	}
}

// closeTimeout limits the time to tell the server that a connection ends.
const closeTimeout = time.Second

// Suspect decides, by an error of the store's own statements, whether the connection is closed.
// A setting that a handler made, such as read only, stays with the connection and lets every
// transaction on it fail. If another connection would meet the error as well, closing this one
// costs one new connection.
func (e *Session) Suspect(ctx context.Context, err error) {
	class := e.DB.Classify(err)
	e.spoiled = ctx.Err() == nil && (class == store.ClassDown || class != store.ClassContended && e.DB.Dialect.Coded(err))
}

// Doubt is Suspect for an error that a handler may have caused. Doubt counts only if the whole
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

// Release returns the connection to the pool, or closes it unless the transaction ended
// cleanly.
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
	case wounded: // the driver may not know yet, or may be using the connection
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

// CommitTx is the only way to commit. If the database file was moved or deleted meanwhile, the
// commit may be lost with it, so its outcome counts as unknown.
func (e *Session) CommitTx(ctx context.Context) error {
	e.commits.Store(true)
	if err := e.within(ctx, e.InTx.Commit); err != nil {
		return err
	}
	return e.DB.File.Check()
}

// RollbackTx rolls back and releases the connection.
func (e *Session) RollbackTx(ctx context.Context) {
	e.Release(e.within(ctx, e.InTx.Rollback) == nil)
}

// KillTx ends the transaction from any goroutine: no statement follows the running one. Other
// writers can begin after the database has rolled back.
func (e *Session) KillTx() {
	e.Killed.Store(true)
	e.cut()
	e.release()
}

// Write runs do in its own transaction, and rolls back if do fails.
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

// lockAnd writes before it reads. A transaction that reads first could find its snapshot
// outdated when it writes, and would fail at once.
func (s *DB) lockAnd(ctx context.Context, tx *sql.Tx, do func(tx *sql.Tx) error) error {
	if _, err := tx.ExecContext(ctx, s.SQL.Lock); err != nil {
		return err
	}
	return do(tx)
}
