package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// How often rows are looked for that were written while the database's clock was ahead. All rows
// that wait for later are read for it, so it takes at most one part in aheadShare of the time.
const (
	aheadEvery = 30 * time.Second
	aheadShare = 200
)

// cutAhead cuts the waits of rows that were written while the database's clock was ahead: of all
// rows every half a minute, and of named ones at once. It is no part of the claim's statement,
// whose rows are found by an index that says nothing of when a row was changed. A failure keeps
// no claim from being made: rows that are due are found all the same, and the next look comes
// later, by as much as this one took.
func (s *Store) cutAhead(ctx context.Context, o *store.ClaimOptions) {
	only := ""
	if len(o.Numbers) > 0 {
		only = sqlform.JSON(o.Numbers)
	} else if !s.cutsAhead() {
		return
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, o.Lease/4) // the claim has what is left of its time
	rows, by, err := claimsOf(s).cutAhead(limited, s, only)
	cancel()
	if only == "" {
		s.mu.Lock()
		s.ahead = time.Now().Add(max(aheadEvery, aheadShare*time.Since(began)))
		if err == nil && rows >= mostAhead {
			s.ahead = time.Time{} // and the next claim goes on
		}
		s.mu.Unlock()
	}
	if err == nil && rows > 0 && o.Ahead != nil {
		o.Ahead(rows, by)
	}
}

// mostAhead is how many rows PostgreSQL cuts with one statement.
const mostAhead = 1000

// cutsAhead reports whether it is time to look, and nobody does.
func (s *Store) cutsAhead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Before(s.ahead) {
		return false
	}
	s.ahead = now.Add(aheadEvery)
	return true
}

func (postgresClaims) cutAhead(ctx context.Context, s *Store, only string) (rows int, by time.Duration, err error) {
	return s.cut(s.db.QueryRowContext(ctx, s.sql.CutAhead, only))
}

// cut reads how many rows are dated ahead, and by how much at most.
func (s *Store) cut(row *sql.Row) (rows int, by time.Duration, err error) {
	var ms int64
	err = row.Scan(&rows, &ms)
	return rows, time.Duration(ms) * time.Millisecond, err
}

// cutAhead looks before it takes the writer's place, which others need.
func (sqliteClaims) cutAhead(ctx context.Context, s *Store, only string) (rows int, by time.Duration, err error) {
	if err := s.file.check(); err != nil {
		return 0, 0, err
	}
	if rows, by, err = s.cut(s.db.QueryRowContext(ctx, s.sqlite.DatedAhead, only)); err != nil || rows == 0 {
		return 0, 0, err
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, s.sql.CutAhead, only)
		return err
	})
	return rows, by, err
}
