package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
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

// storeError is a failure of the store that no message is to blame for.
type storeError struct {
	doing string
	class store.Class
	err   error
}

func (e *storeError) Error() string { return fmt.Sprintf("sqlstore: %s: %v", e.doing, e.err) }
func (e *storeError) Unwrap() error { return e.err }

// blameless says what an error of the store's own statements means: waiting
// may mend it or a person must, but it is no message's attempt.
func (s *Store) blameless(doing string, err error) error {
	class := s.Classify(err)
	switch {
	case s.noPartition(err):
		class = store.ClassContended
	case class != store.ClassContended:
		class = store.ClassDown
	}
	return &storeError{doing, class, s.hint(s.advised(err))}
}

// advised adds to an error of the store's own statements what to do about its
// tables. A fault of the schema that was found says so itself.
func (s *Store) advised(err error) error {
	if remedy := s.dialect.ownRemedy(err); remedy != "" && s.marksAlone() && !errors.Is(err, semel.ErrSchema) {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return err
}

// hint adds to an error of the driver what to do about it, whoever's statement
// it is of.
func (s *Store) hint(err error) error {
	if remedy := s.dialect.remedy(err); remedy != "" {
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return err
}

// open waits for the writer's place and begins a transaction there. ctx ends
// the wait and the call, not the transaction.
func (s *Store) open(ctx context.Context, level sql.IsolationLevel) (*session, error) {
	release, err := s.acquireWriter(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := s.connection(ctx)
	if err != nil {
		release()
		return nil, err
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e := &session{store: s, conn: conn, cancel: cancel, release: release, plans: s.outdated.Load()}
	if s.dialect.handle != nil {
		_ = conn.Raw(func(c any) error { e.handle = s.dialect.handle(c); return nil })
	}
	if s.dialect.commitHook {
		_ = conn.Raw(func(c any) error { e.hooked = hookCommits(c, e.commits.Load); return nil })
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

// connection takes one to a database whose file is where it was: SQLite would
// make an empty one where there is none.
func (s *Store) connection(ctx context.Context) (*sql.Conn, error) {
	if err := s.file.check(); err != nil {
		return nil, err
	}
	return s.db.Conn(ctx)
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

// acquireWriter waits for one of the places of those who may write.
func (s *Store) acquireWriter(ctx context.Context) (release func(), err error) {
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

// suspect takes note of an error of the store's own statements. Settings that a
// handler made stay with its connection, such as one to read only, and every
// transaction on it fails until somebody closes it. What another connection
// would meet as well costs a new one a try.
func (e *session) suspect(ctx context.Context, err error) {
	class := e.store.Classify(err)
	e.spoiled = ctx.Err() == nil && (class == store.ClassDown || class != store.ClassContended && e.store.dialect.coded(err))
}

// doubt is suspect after handlers ran, whose doing an error may be: only one that
// is of the store as a whole counts.
func (e *session) doubt(err error) {
	e.spoiled = e.spoiled || e.store.Classify(err) == store.ClassDown
}

// close closes the connection below database/sql.
func (e *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = e.handle.close(ctx)
}

// over gives the connection back, or throws it away with everything that it
// may still hold, unless the transaction ended cleanly.
func (e *session) over(clean bool) {
	e.mu.Lock()
	e.gone = true
	wounded := e.wounded
	clean = clean && !e.wounded && !e.spoiled && e.plans == e.store.outdated.Load()
	e.mu.Unlock()
	if e.hooked {
		_ = e.conn.Raw(func(c any) error { unhookCommits(c); return nil })
	}
	switch {
	case e.handle.close == nil:
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

// commit is the only way to commit. A file that was moved or deleted meanwhile
// may have the commit, and nobody may find it there: whether it happened is then
// not known.
func (e *session) commit(ctx context.Context) error {
	e.commits.Store(true)
	if err := e.within(ctx, e.tx.Commit); err != nil {
		return err
	}
	return e.store.file.check()
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
		e.suspect(ctx, err)
		e.rollback(ctx)
		return err
	}
	err = e.commit(ctx)
	e.over(err == nil)
	if err != nil && !isOver(err) && !s.dialect.rolledBack(err) {
		return &unknownError{err}
	}
	return err
}

// unknownError is an error of a COMMIT that may have happened.
type unknownError struct{ err error }

func (e *unknownError) Error() string { return e.err.Error() }
func (e *unknownError) Unwrap() error { return e.err }

// lockAnd writes before it reads: a transaction that reads first could find,
// when it writes, that what it read is old, and fail at once.
func (s *Store) lockAnd(ctx context.Context, tx *sql.Tx, do func(tx *sql.Tx) error) error {
	if _, err := tx.ExecContext(ctx, s.sql.Lock); err != nil {
		return err
	}
	return do(tx)
}

// isOver reports whether the transaction was ended by someone else.
func isOver(err error) bool { return errors.Is(err, sql.ErrTxDone) }
