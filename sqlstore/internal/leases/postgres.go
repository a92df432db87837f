package leases

import (
	"context"
	"database/sql"
	"time"

	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/sqlstate"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/inbox"
	"github.com/semel-go/semel/sqlstore/internal/ordering"
	"github.com/semel-go/semel/store"
)

func (postgresClaims) calls(ctx context.Context, s *database.DB, claims []store.Claim, lease time.Duration) ([]store.CallStarted, error) {
	all := make([]store.CallStarted, len(claims))
	err := database.EachRow(ctx, s.Pool, s.Postgres.StartCalls, func(rows *sql.Rows) error {
		var k, since int64
		c := store.CallStarted{Stands: true}
		if err := rows.Scan(&k, &c.Started, &c.Finished, &since, &c.Again); err != nil {
			return err
		}
		c.Since = calls.Ago(time.Duration(since) * time.Millisecond)
		all[k] = c
		return nil
	}, sqlform.ClaimsArgument(claims), lease.Milliseconds())
	return all, err
}

// postgresClaims uses one statement for any number of claims.
type postgresClaims struct{}

func (postgresClaims) claim(ctx context.Context, s *database.DB, o store.ClaimOptions) ([]store.Claimed, error) {
	only := ""
	if len(o.Numbers) > 0 {
		only = sqlform.JSON(o.Numbers)
	}
	all, err := readClaimed(ctx, s, o.Token, s.Postgres.Claim, true, []byte(o.Consumer), int64(o.Token), o.Most, o.Bytes, o.Lease.Milliseconds(), only)
	for i := range all {
		all[i].Row = claimedNow(all[i].Row, all[i].Suspect)
	}
	return all, err
}

func (postgresClaims) held(ctx context.Context, s *database.DB, consumer string, t store.Token) ([]store.Claimed, error) {
	return readClaimed(ctx, s, t, s.SQL.Held, true, []byte(consumer), int64(t))
}

// readClaimed runs a query that claims rows with the token, and returns the claimed rows.
func readClaimed(ctx context.Context, db *database.DB, t store.Token, query string, args ...any) ([]store.Claimed, error) {
	return database.List(ctx, db.Pool, query, func(rows *sql.Rows) (c store.Claimed, err error) {
		var left int64
		c.Row, err = inbox.ScanRow(db, rows, &c.Suspect, &left, &c.Blocked)
		c.Claim, c.Left = store.Claim{Number: c.Row.Number, Token: t}, time.Duration(left)*time.Millisecond
		return c, err
	}, args...)
}

func (postgresClaims) extend(ctx context.Context, s *database.DB, claims []store.Claim, lease time.Duration) ([]int, error) {
	return database.Indexes(ctx, s.Pool, s.SQL.Extend, sqlform.ClaimsArgument(claims), lease.Milliseconds())
}

func (postgresClaims) start(ctx context.Context, s *database.DB, claims []store.Claim) ([]int, error) {
	return database.Indexes(ctx, s.Pool, s.Postgres.StartClaims, sqlform.ClaimsArgument(claims))
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

// endedClaims ends claims, and returns the indexes of the claims that are no longer valid.
func endedClaims(ctx context.Context, s *database.DB, in database.Queryer, endings []store.ClaimEnding) ([]int, error) {
	stood, err := database.Indexes(ctx, in, s.Postgres.EndClaims, sqlform.EndingsArgument(s.Crypt, endings))
	if err != nil {
		return nil, err
	}
	return lostOf(len(endings), stood), nil
}

func (postgresClaims) retake(ctx context.Context, s *database.DB, numbers []int64, from []store.Token, to store.Token) ([]store.Reclaimed, error) {
	return database.List(ctx, s.Pool, s.SQL.Reclaim, func(rows *sql.Rows) (store.Reclaimed, error) {
		var r store.Reclaimed
		err := rows.Scan(&r.State, &r.Taken)
		return r, err
	}, sqlform.JSON(numbers), sqlform.JSON(from), int64(to))
}

func (postgresClaims) Look(ctx context.Context, s *database.DB, tx *sql.Tx, claims []store.Claim, stands func(k int, done bool)) error {
	return database.EachRow(ctx, tx, s.SQL.Look, func(rows *sql.Rows) error {
		var k int
		var done bool
		if err := rows.Scan(&k, &done); err != nil {
			return err
		}
		stands(k, done)
		return nil
	}, sqlform.ClaimsArgument(claims))
}

func (postgresClaims) Close(ctx context.Context, s *database.DB, tx *sql.Tx, endings []store.ClaimEnding) error {
	text, args := sqlform.ClosingClaims(s.Crypt, s.Postgres, endings)
	_, err := tx.ExecContext(ctx, text, args...)
	if database.SQLState(err) == sqlstate.ClaimLost {
		return errClaimLost
	}
	if err != nil {
		return err
	}
	return stepClaims(ctx, s, tx, endings)
}

// stepClaims writes the steps of the claims that were ended in tx.
func stepClaims(ctx context.Context, s *database.DB, tx *sql.Tx, endings []store.ClaimEnding) error {
	argument, err := sqlform.StepsArgument(s.Crypt, endings)
	if argument == "" {
		return err
	}
	_, err = tx.ExecContext(ctx, s.SQL.ClaimSteps, argument)
	return err
}

// withSteps returns the endings that have steps, except the endings of lost claims.
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
