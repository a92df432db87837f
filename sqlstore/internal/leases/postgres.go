package leases

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/inbox"
	"github.com/semel-go/semel/sqlstore/internal/ordering"
	"github.com/semel-go/semel/store"
)

func (postgresClaims) calls(ctx context.Context, s *database.DB, claims []store.Claim, lease time.Duration) ([]store.CallStarted, error) {
	rows, err := s.Pool.QueryContext(ctx, s.Postgres.StartCalls, sqlform.ClaimsArgument(claims), lease.Milliseconds())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := make([]store.CallStarted, len(claims))
	for rows.Next() {
		var k, since int64
		c := store.CallStarted{Stands: true}
		if err := rows.Scan(&k, &c.Started, &c.Finished, &since, &c.Again); err != nil {
			return nil, err
		}
		c.Since = calls.Ago(time.Duration(since) * time.Millisecond)
		all[k] = c
	}
	return all, rows.Err()
}

// postgresClaims are claims by one statement each, whatever their number.
type postgresClaims struct{}

func (postgresClaims) claim(ctx context.Context, s *database.DB, o store.ClaimOptions) ([]store.Claimed, error) {
	only := ""
	if len(o.Numbers) > 0 {
		only = sqlform.JSON(o.Numbers)
	}
	rows, err := s.Pool.QueryContext(ctx, s.Postgres.Claim, true, []byte(o.Consumer), int64(o.Token), o.Most, o.Bytes, o.Lease.Milliseconds(), only)
	all, err := readClaimed(s, rows, err, o.Token)
	for i := range all {
		all[i].Row = claimedNow(all[i].Row, all[i].Suspect)
	}
	return all, err
}

func (postgresClaims) held(ctx context.Context, s *database.DB, consumer string, t store.Token) ([]store.Claimed, error) {
	rows, err := s.Pool.QueryContext(ctx, s.SQL.Held, true, []byte(consumer), int64(t))
	return readClaimed(s, rows, err, t)
}

// readClaimed reads rows that are claimed with the token.
func readClaimed(db *database.DB, rows *sql.Rows, err error, t store.Token) ([]store.Claimed, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []store.Claimed
	for rows.Next() {
		var c store.Claimed
		var left int64
		if c.Row, err = inbox.ScanRow(db, rows, &c.Suspect, &left, &c.Blocked); err != nil {
			return nil, err
		}
		c.Claim, c.Left = store.Claim{Number: c.Row.Number, Token: t}, time.Duration(left)*time.Millisecond
		all = append(all, c)
	}
	return all, rows.Err()
}

func (postgresClaims) extend(ctx context.Context, s *database.DB, claims []store.Claim, lease time.Duration) ([]int, error) {
	return database.Indexes(s.Pool.QueryContext(ctx, s.SQL.Extend, sqlform.ClaimsArgument(claims), lease.Milliseconds()))
}

func (postgresClaims) start(ctx context.Context, s *database.DB, claims []store.Claim) ([]int, error) {
	return database.Indexes(s.Pool.QueryContext(ctx, s.Postgres.StartClaims, sqlform.ClaimsArgument(claims)))
}

func (postgresClaims) end(ctx context.Context, s *database.DB, endings []store.ClaimEnding) (lost []int, err error) {
	left := lines.Leaving(endings)
	if len(left) == 0 && len(withSteps(endings, nil)) == 0 {
		return endedClaims(ctx, s, s.Pool, endings)
	}
	err = s.Write(ctx, func(tx *sql.Tx) error {
		if lost, err = endedClaims(ctx, s, tx, endings); err != nil {
			return err
		}
		if err := stepClaims(ctx, s, tx, withSteps(endings, lost)); err != nil {
			return err
		}
		return ordering.LeaveLines(ctx, s, tx, left)
	})
	return lost, err
}

// endedClaims ends claims by db, and returns those that do not stand.
func endedClaims(ctx context.Context, s *database.DB, db interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, endings []store.ClaimEnding) ([]int, error) {
	stood, err := database.Indexes(db.QueryContext(ctx, s.Postgres.EndClaims, sqlform.EndingsArgument(s.Crypt, endings)))
	if err != nil {
		return nil, err
	}
	return lostOf(len(endings), stood), nil
}

func (postgresClaims) retake(ctx context.Context, s *database.DB, numbers []int64, from []store.Token, to store.Token) ([]store.Reclaimed, error) {
	rows, err := s.Pool.QueryContext(ctx, s.SQL.Reclaim, sqlform.JSON(numbers), sqlform.JSON(from), int64(to))
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

func (postgresClaims) Look(ctx context.Context, s *database.DB, tx *sql.Tx, claims []store.Claim, stands func(k int, done bool)) error {
	rows, err := tx.QueryContext(ctx, s.SQL.Look, sqlform.ClaimsArgument(claims))
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

func (postgresClaims) Close(ctx context.Context, s *database.DB, tx *sql.Tx, endings []store.ClaimEnding) error {
	text, args := sqlform.ClosingClaims(s.Crypt, s.Postgres, endings)
	_, err := tx.ExecContext(ctx, text, args...)
	if database.SQLState(err) == database.StateClaimLost {
		return errClaimLost
	}
	if err != nil {
		return err
	}
	return stepClaims(ctx, s, tx, endings)
}

// stepClaims writes the steps of claims that have ended in tx.
func stepClaims(ctx context.Context, s *database.DB, tx *sql.Tx, endings []store.ClaimEnding) error {
	argument, err := sqlform.StepsArgument(s.Crypt, endings)
	if argument == "" {
		return err
	}
	_, err = tx.ExecContext(ctx, s.SQL.ClaimSteps, argument)
	return err
}

// withSteps are those of the endings that say something of steps, without those that were
// lost.
func withSteps(endings []store.ClaimEnding, lost []int) (all []store.ClaimEnding) {
	for i := range endings {
		if len(lost) > 0 && lost[0] == i {
			lost = lost[1:]
			continue
		}
		if endings[i].Steps != nil {
			all = append(all, endings[i])
		}
	}
	return all
}
