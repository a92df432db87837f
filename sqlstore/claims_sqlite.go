package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// sqliteClaims are claims one by one, in a transaction that has the writer's place:
// nothing of it is a round trip.
type sqliteClaims struct{}

// claimable is a row that is due. suspect and blocked are as in store.Claimed.
type claimable struct {
	row     store.StoredRow
	suspect bool
	blocked bool
}

func (sqliteClaims) claim(ctx context.Context, s *Store, o store.ClaimOptions) (all []store.Claimed, err error) {
	some, err := s.mayBeDue(ctx, o.Consumer)
	if err != nil || !some {
		return nil, err
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		all = nil
		due, err := s.claimable(ctx, tx, o)
		if err != nil {
			return err
		}
		bytes := int64(0)
		for _, c := range due {
			if bytes += int64(c.row.Size); len(all) == o.Most || len(all) > 0 && o.Bytes > 0 && bytes > o.Bytes {
				break
			}
			if _, err := tx.ExecContext(ctx, s.sqlite.Take, int64(o.Token), o.Lease.Milliseconds(), c.row.Number); err != nil {
				return err
			}
			all = append(all, store.Claimed{Claim: store.Claim{Number: c.row.Number, Token: o.Token}, Row: claimedNow(c.row, c.suspect), Left: o.Lease, Suspect: c.suspect, Blocked: c.blocked})
		}
		return nil
	})
	return all, err
}

// mayBeDue looks for rows that wait before it takes the writer's place, which
// others need: an inbox is mostly empty.
func (s *Store) mayBeDue(ctx context.Context, consumer string) (bool, error) {
	if err := s.file.check(); err != nil {
		return false, err
	}
	some := false
	err := s.db.QueryRowContext(ctx, s.sqlite.AnyDue, []byte(consumer)).Scan(&some)
	return some, err
}

// claimable returns the rows that are due, the longest due first. It stops reading one row after
// their bodies exceed what may be claimed at once.
func (s *Store) claimable(ctx context.Context, tx *sql.Tx, o store.ClaimOptions) ([]claimable, error) {
	only := ""
	if len(o.Numbers) > 0 {
		only = sqlform.JSON(o.Numbers)
	}
	rows, err := tx.QueryContext(ctx, s.sqlite.Claimable, true, []byte(o.Consumer), only, o.Most)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []claimable
	bytes := int64(0)
	for (o.Bytes <= 0 || bytes <= o.Bytes) && rows.Next() {
		var c claimable
		if c.row, err = s.scanRow(rows, &c.suspect, &c.blocked); err != nil {
			return nil, err
		}
		all, bytes = append(all, c), bytes+int64(c.row.Size)
	}
	return all, rows.Err()
}

func (sqliteClaims) held(ctx context.Context, s *Store, consumer string, t store.Token) ([]store.Claimed, error) {
	rows, err := s.db.QueryContext(ctx, s.sql.Held, true, []byte(consumer), int64(t))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []store.Claimed
	for rows.Next() {
		var left int64
		c := store.Claimed{Suspect: true}
		if c.Row, err = s.scanRow(rows, &left); err != nil {
			return nil, err
		}
		c.Claim = store.Claim{Number: c.Row.Number, Token: t}
		c.Left = time.Duration(left) * time.Millisecond
		all = append(all, c)
	}
	return all, rows.Err()
}

// extend only looks while a batch of this store is open: that has the writer's place,
// and nobody can claim its rows.
func (sqliteClaims) extend(ctx context.Context, s *Store, claims []store.Claim, lease time.Duration) (lost []int, err error) {
	if !s.writerIsFree(ctx) {
		for i, c := range claims {
			var is int
			switch err := s.db.QueryRowContext(ctx, s.sqlite.HasClaim, c.Number, int64(c.Token)).Scan(&is); {
			case errors.Is(err, sql.ErrNoRows):
				lost = append(lost, i)
			case err != nil:
				return nil, err
			}
		}
		return lost, nil
	}
	return s.each(ctx, len(claims), func(tx *sql.Tx, i int) (sql.Result, error) {
		return tx.ExecContext(ctx, s.sql.Extend, lease.Milliseconds(), claims[i].Number, int64(claims[i].Token))
	})
}

// shortWrite is longer than a write takes that is no batch.
const shortWrite = 100 * time.Millisecond

// writerIsFree waits a little for the writer's place, and reports whether no batch has
// it.
func (s *Store) writerIsFree(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, shortWrite)
	defer cancel()
	release, err := s.acquireWriter(ctx)
	if err == nil {
		release()
	}
	return err == nil
}

func (sqliteClaims) start(ctx context.Context, s *Store, claims []store.Claim) ([]int, error) {
	return s.each(ctx, len(claims), func(tx *sql.Tx, i int) (sql.Result, error) {
		return tx.ExecContext(ctx, s.sqlite.StartClaim, claims[i].Number, int64(claims[i].Token))
	})
}

func (sqliteClaims) end(ctx context.Context, s *Store, endings []store.ClaimEnding) ([]int, error) {
	return s.each(ctx, len(endings), func(tx *sql.Tx, i int) (sql.Result, error) {
		done, err := s.endClaim(ctx, tx, &endings[i])
		if err == nil {
			err = s.leaveLines(ctx, tx, lines.Leaving(endings[i:i+1]))
		}
		return done, err
	})
}

// each does something to each of n claims in one transaction, and returns those that
// do not stand.
func (s *Store) each(ctx context.Context, n int, do func(tx *sql.Tx, i int) (sql.Result, error)) (lost []int, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		lost = nil
		for i := range n {
			done, err := do(tx, i)
			if err != nil {
				return err
			}
			if changed, err := done.RowsAffected(); err != nil {
				return err
			} else if changed == 0 {
				lost = append(lost, i)
			}
		}
		return nil
	})
	return lost, err
}

// endClaim ends a claim, if it stands, with its marker.
func (s *Store) endClaim(ctx context.Context, tx *sql.Tx, e *store.ClaimEnding) (sql.Result, error) {
	a := sqlform.EndingOf(s.crypt, e)
	done, err := tx.ExecContext(ctx, s.sqlite.EndClaim, a.State, a.Outcome, a.After, a.Ran, a.Reason, a.Error, a.N, a.T, a.Taken, e.Version.Stream, a.Place, a.Call)
	if err != nil {
		return nil, err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return done, err
	}
	_, err = tx.ExecContext(ctx, s.sqlite.EndMarker, a.Outcome, a.N)
	if err != nil || e.Steps == nil {
		return done, err
	}
	text, err := sqlform.Steps(s.crypt, a.N, e.Steps)
	if err == nil {
		_, err = tx.ExecContext(ctx, s.sql.ClaimSteps, a.N, text, e.Event == store.RowStepped)
	}
	return done, err
}

func (sqliteClaims) retake(ctx context.Context, s *Store, numbers []int64, from []store.Token, to store.Token) (all []store.Reclaimed, err error) {
	tokens := sqlform.JSON(from)
	err = s.write(ctx, func(tx *sql.Tx) error {
		all = make([]store.Reclaimed, len(numbers))
		for i, n := range numbers {
			done, err := tx.ExecContext(ctx, s.sql.Reclaim, int64(to), n, tokens)
			if err != nil {
				return err
			}
			changed, err := done.RowsAffected()
			if err != nil {
				return err
			}
			all[i].Taken = changed == 1
			if err := tx.QueryRowContext(ctx, s.sqlite.StateOf, n).Scan(&all[i].State); err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		return nil
	})
	return all, err
}

func (sqliteClaims) look(ctx context.Context, s *Store, tx *sql.Tx, claims []store.Claim, stands func(k int, done bool)) error {
	for i, c := range claims {
		var one int
		switch err := tx.QueryRowContext(ctx, s.sql.Look, c.Number, int64(c.Token)).Scan(&one); {
		case err == nil:
			stands(i, false)
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
	}
	return nil
}

func (sqliteClaims) close(ctx context.Context, s *Store, tx *sql.Tx, endings []store.ClaimEnding) error {
	for i := range endings {
		one := endings[i]
		one.Call = store.CallNone // which says nothing in a batch
		done, err := s.endClaim(ctx, tx, &one)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil {
			return err
		} else if n == 0 {
			return errClaimLost
		}
	}
	return nil
}
