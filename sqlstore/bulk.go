package sqlstore

import (
	"context"
	"database/sql"
	"iter"
	"runtime"
	"sync/atomic"

	"github.com/semel-go/semel/store"
)

// lists runs statements over lists in a transaction.
type lists struct {
	store *Store
	tx    *sql.Tx
	// own: tx is of the store's own database, so that what is prepared there fits.
	own bool
}

// chunks are the pieces of a list that statements take: those that are prepared,
// or else as few as can be.
func (l lists) chunks(of []int) iter.Seq[[]int] {
	if !l.own || l.store.prepared.byLength.Load() == nil {
		return l.store.dialect.chunks(of)
	}
	return func(yield func([]int) bool) {
		for _, n := range l.store.dialect.lengths {
			for len(of) >= n {
				if !yield(of[:n:n]) {
					return
				}
				of = of[n:]
			}
		}
	}
}

// query runs a statement over tuples of so many values, which lie in flat one
// after the other; more are further arguments.
func (l lists) query(ctx context.Context, statement string, width int, flat []any, more ...any) (*sql.Rows, error) {
	if prepared := l.store.prepared.of(statement, len(flat)/width); l.own && prepared != nil {
		return l.tx.StmtContext(ctx, prepared).QueryContext(ctx, append(flat, more...)...)
	}
	text, args := l.store.bulk(statement, width, flat)
	return l.tx.QueryContext(ctx, text, append(args, more...)...)
}

// prepared are statements with lists of each of the dialect's lengths. SQLite
// needs twice as long to read one with 500 tuples as to carry it out.
type prepared struct {
	byLength atomic.Pointer[map[ofLength]*sql.Stmt]
	busy     atomic.Bool
}

type ofLength struct {
	statement string
	n         int
}

func (p *prepared) of(statement string, n int) *sql.Stmt {
	if all := p.byLength.Load(); all != nil {
		return (*all)[ofLength{statement, n}]
	}
	return nil
}

// prepareLists prepares what marks need, once and before a batch has its
// connection, because a pool may have no second one. What cannot be prepared
// now, such as before the tables are there, is sent as text until it can. The
// error is of who waited for a lock: a batch would wait as long again.
func (s *Store) prepareLists(ctx context.Context) error {
	p := &s.prepared
	if len(s.dialect.lengths) == 0 || p.byLength.Load() != nil || !p.busy.CompareAndSwap(false, true) {
		return nil
	}
	defer p.busy.Store(false)
	all := map[ofLength]*sql.Stmt{}
	for _, statement := range []string{s.sql.Mark, s.sql.Judge} {
		for _, n := range s.dialect.lengths {
			stmt, err := s.prepare(ctx, list(statement, n))
			if stmt == nil {
				closeAll(all)
				return err
			}
			all[ofLength{statement, n}] = stmt
		}
	}
	runtime.AddCleanup(s, closeAll, all)
	p.byLength.Store(&all)
	return nil
}

// prepare prepares on a connection that is open, and opens none: each one that is
// opened could make an empty database where a file was. Without a statement and
// an error there is nothing to prepare it on, or not yet.
func (s *Store) prepare(ctx context.Context, text string) (*sql.Stmt, error) {
	if s.db.Stats().Idle == 0 || s.file.check() != nil {
		return nil, nil
	}
	stmt, err := s.db.PrepareContext(ctx, text)
	if err != nil && s.Classify(err) != store.ClassContended {
		err = nil
	}
	return stmt, err
}

func closeAll(all map[ofLength]*sql.Stmt) {
	for _, stmt := range all {
		_ = stmt.Close()
	}
}
