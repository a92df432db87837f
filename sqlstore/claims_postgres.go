package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// postgresClaims are claims by one statement each, whatever their number.
type postgresClaims struct{}

func (postgresClaims) claim(ctx context.Context, s *Store, o store.ClaimOptions) ([]store.Claimed, error) {
	only := ""
	if len(o.Numbers) > 0 {
		only = sqlform.JSON(o.Numbers)
	}
	rows, err := s.db.QueryContext(ctx, s.postgres.Claim, true, []byte(o.Consumer), int64(o.Token), o.Most, o.Bytes, o.Lease.Milliseconds(), only)
	all, err := s.readClaimed(rows, err, o.Token)
	for i := range all {
		all[i].Row = claimedNow(all[i].Row, all[i].Suspect)
	}
	return all, err
}

func (postgresClaims) held(ctx context.Context, s *Store, consumer string, t store.Token) ([]store.Claimed, error) {
	rows, err := s.db.QueryContext(ctx, s.sql.Held, true, []byte(consumer), int64(t))
	return s.readClaimed(rows, err, t)
}

// readClaimed reads rows that are claimed with the token.
func (s *Store) readClaimed(rows *sql.Rows, err error, t store.Token) ([]store.Claimed, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []store.Claimed
	for rows.Next() {
		var c store.Claimed
		var left int64
		if c.Row, err = s.scanRow(rows, &c.Suspect, &left, &c.Blocked); err != nil {
			return nil, err
		}
		c.Claim, c.Left = store.Claim{Number: c.Row.Number, Token: t}, time.Duration(left)*time.Millisecond
		all = append(all, c)
	}
	return all, rows.Err()
}

func (postgresClaims) extend(ctx context.Context, s *Store, claims []store.Claim, lease time.Duration) ([]int, error) {
	return indexes(s.db.QueryContext(ctx, s.sql.Extend, sqlform.ClaimsArgument(claims), lease.Milliseconds()))
}

func (postgresClaims) start(ctx context.Context, s *Store, claims []store.Claim) ([]int, error) {
	return indexes(s.db.QueryContext(ctx, s.postgres.StartClaims, sqlform.ClaimsArgument(claims)))
}

func (postgresClaims) end(ctx context.Context, s *Store, endings []store.ClaimEnding) (lost []int, err error) {
	left := lines.Leaving(endings)
	if len(left) == 0 && len(withSteps(endings, nil)) == 0 {
		return endedClaims(ctx, s, s.db, endings)
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		if lost, err = endedClaims(ctx, s, tx, endings); err != nil {
			return err
		}
		if err := stepClaims(ctx, s, tx, withSteps(endings, lost)); err != nil {
			return err
		}
		return s.leaveLines(ctx, tx, left)
	})
	return lost, err
}

// endedClaims ends claims by db, and returns those that do not stand.
func endedClaims(ctx context.Context, s *Store, db interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, endings []store.ClaimEnding) ([]int, error) {
	stood, err := indexes(db.QueryContext(ctx, s.postgres.EndClaims, sqlform.EndingsArgument(s.crypt, endings)))
	if err != nil {
		return nil, err
	}
	return lostOf(len(endings), stood), nil
}

func (postgresClaims) retake(ctx context.Context, s *Store, numbers []int64, from []store.Token, to store.Token) ([]store.Reclaimed, error) {
	rows, err := s.db.QueryContext(ctx, s.sql.Reclaim, sqlform.JSON(numbers), sqlform.JSON(from), int64(to))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []store.Reclaimed
	for rows.Next() {
		var r store.Reclaimed
		if err := rows.Scan(&r.State, &r.Taken); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

func (postgresClaims) look(ctx context.Context, s *Store, tx *sql.Tx, claims []store.Claim, stands func(k int, done bool)) error {
	rows, err := tx.QueryContext(ctx, s.sql.Look, sqlform.ClaimsArgument(claims))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var k int
		var done bool
		if err := rows.Scan(&k, &done); err != nil {
			return err
		}
		stands(k, done)
	}
	return rows.Err()
}

func (postgresClaims) close(ctx context.Context, s *Store, tx *sql.Tx, endings []store.ClaimEnding) error {
	text, args := sqlform.ClosingClaims(s.crypt, s.postgres, endings)
	_, err := tx.ExecContext(ctx, text, args...)
	if sqlState(err) == stateClaimLost {
		return errClaimLost
	}
	if err != nil {
		return err
	}
	return stepClaims(ctx, s, tx, endings)
}
