package leases

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/inbox"
	"github.com/semel-go/semel/sqlstore/internal/ordering"
	"github.com/semel-go/semel/store"
)

func (sqliteClaims) calls(ctx context.Context, s *database.DB, claims []store.Claim, lease time.Duration) (all []store.CallStarted, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) error {
		all = make([]store.CallStarted, len(claims))
		for i, c := range claims {
			var since int64
			err := tx.QueryRowContext(ctx, s.SQLite.StartCall, c.Number, int64(c.Token), lease.Milliseconds()).Scan(&all[i].Started, &all[i].Finished, &since, &all[i].Again)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			all[i].Stands, all[i].Since = err == nil, calls.Ago(time.Duration(since)*time.Millisecond)
		}
		return nil
	})
	return all, err
}

// sqliteClaims handles claims one by one, in a transaction that excludes other writers. With SQLite, no statement is a
// round trip.
type sqliteClaims struct{}

// claimable is a row that can be claimed now. The fields suspect and blocked have the same meaning as the fields of
// store.Claimed.
type claimable struct {
	row     store.StoredRow
	suspect bool
	blocked bool
}

func (sqliteClaims) claim(ctx context.Context, s *database.DB, o store.ClaimOptions) (all []store.Claimed, err error) {
	some, err := mayBeDue(ctx, s, o.Consumer)
	if err != nil || !some {
		return nil, err
	}
	err = s.Write(ctx, func(tx *sql.Tx) error {
		all = nil
		due, err := dueRows(ctx, s, tx, o)
		if err != nil {
			return err
		}
		bytes := int64(0)
		for _, c := range due {
			if bytes += int64(c.row.Size); len(all) == o.Most || len(all) > 0 && o.Bytes > 0 && bytes > o.Bytes {
				break
			}
			if _, err := tx.ExecContext(ctx, s.SQLite.Take, int64(o.Token), o.Lease.Milliseconds(), c.row.Number); err != nil {
				return err
			}
			all = append(all, store.Claimed{Claim: store.Claim{Number: c.row.Number, Token: o.Token}, Row: claimedNow(c.row, c.suspect), Left: o.Lease, Suspect: c.suspect, Blocked: c.blocked})
		}
		return nil
	})
	return all, err
}

// mayBeDue checks whether rows wait, without excluding other writers. Usually the inbox is empty.
func mayBeDue(ctx context.Context, s *database.DB, consumer string) (bool, error) {
	if err := s.File.Check(); err != nil {
		return false, err
	}
	some := false
	err := s.Pool.QueryRowContext(ctx, s.SQLite.AnyDue, []byte(consumer)).Scan(&some)
	return some, err
}

// dueRows returns the rows that can be claimed now, ordered by their waiting time. The list ends with the row whose
// body makes the sum of the bodies exceed the limit of the claim.
func dueRows(ctx context.Context, db *database.DB, tx *sql.Tx, o store.ClaimOptions) ([]claimable, error) {
	only := ""
	if len(o.Numbers) > 0 {
		only = sqlform.JSON(o.Numbers)
	}
	rows, err := tx.QueryContext(ctx, db.SQLite.Claimable, true, []byte(o.Consumer), only, o.Most)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []claimable
	bytes := int64(0)
	for (o.Bytes <= 0 || bytes <= o.Bytes) && rows.Next() {
		var c claimable
		if c.row, err = inbox.ScanRow(db, rows, &c.suspect, &c.blocked); err != nil {
			return nil, err
		}
		all, bytes = append(all, c), bytes+int64(c.row.Size)
	}
	return all, rows.Err()
}

func (sqliteClaims) held(ctx context.Context, s *database.DB, consumer string, t store.Token) ([]store.Claimed, error) {
	return database.List(ctx, s.Pool, s.SQL.Held, func(rows *sql.Rows) (store.Claimed, error) {
		var left int64
		row, err := inbox.ScanRow(s, rows, &left)
		return store.Claimed{Claim: store.Claim{Number: row.Number, Token: t}, Row: row, Left: time.Duration(left) * time.Millisecond, Suspect: true}, err
	}, true, []byte(consumer), int64(t))
}

// extend only checks the claims while a batch of this store is open. The batch excludes other writers, so no other
// process can claim the rows.
func (sqliteClaims) extend(ctx context.Context, s *database.DB, claims []store.Claim, lease time.Duration) (lost []int, err error) {
	if !writerIsFree(ctx, s) {
		for i, c := range claims {
			var is int
			switch err := s.Pool.QueryRowContext(ctx, s.SQLite.HasClaim, c.Number, int64(c.Token)).Scan(&is); {
			case errors.Is(err, sql.ErrNoRows):
				lost = append(lost, i)
			case err != nil:
				return nil, err
			}
		}
		return lost, nil
	}
	return forEachClaim(ctx, s, len(claims), func(tx *sql.Tx, i int) (bool, error) {
		return database.ChangedIn(ctx, tx, s.SQL.Extend, lease.Milliseconds(), claims[i].Number, int64(claims[i].Token))
	})
}

// A time that is longer than any write of the store, except a batch.
const shortWrite = 100 * time.Millisecond

// writerIsFree waits briefly for the right to write, and reports whether it got this right.
func writerIsFree(ctx context.Context, db *database.DB) bool {
	ctx, cancel := context.WithTimeout(ctx, shortWrite)
	defer cancel()
	release, err := db.AcquireWriter(ctx)
	if err == nil {
		release()
	}
	return err == nil
}

func (sqliteClaims) start(ctx context.Context, s *database.DB, claims []store.Claim) ([]int, error) {
	return forEachClaim(ctx, s, len(claims), func(tx *sql.Tx, i int) (bool, error) {
		return database.ChangedIn(ctx, tx, s.SQLite.StartClaim, claims[i].Number, int64(claims[i].Token))
	})
}

func (sqliteClaims) end(ctx context.Context, s *database.DB, endings []store.ClaimEnding) ([]int, error) {
	return forEachClaim(ctx, s, len(endings), func(tx *sql.Tx, i int) (bool, error) {
		stood, err := endClaim(ctx, s, tx, &endings[i])
		if err == nil {
			err = ordering.LeaveLines(ctx, s, tx, lines.Leaving(endings[i:i+1]))
		}
		return stood, err
	})
}

// forEachClaim calls the function do for n claims, in one transaction. The function do reports whether a claim is
// valid. The result contains the indexes of the claims that are not valid.
func forEachClaim(ctx context.Context, db *database.DB, n int, do func(tx *sql.Tx, i int) (bool, error)) (lost []int, err error) {
	err = db.Write(ctx, func(tx *sql.Tx) error {
		lost = nil
		for i := range n {
			stood, err := do(tx, i)
			if err != nil {
				return err
			}
			if !stood {
				lost = append(lost, i)
			}
		}
		return nil
	})
	return lost, err
}

// endClaim ends a claim and its marker if the claim is valid. The result stood is true if the claim was valid.
func endClaim(ctx context.Context, db *database.DB, tx *sql.Tx, e *store.ClaimEnding) (stood bool, err error) {
	a := sqlform.EndingOf(db.Crypt, e)
	stood, err = database.ChangedIn(ctx, tx, db.SQLite.EndClaim, a.State, a.Outcome, a.After, a.Ran, a.Reason, a.Error, a.N, a.T, a.Taken, e.Version.Stream, a.Place, a.Call)
	if err != nil || !stood {
		return false, err
	}
	_, err = tx.ExecContext(ctx, db.SQLite.EndMarker, a.Outcome, a.N)
	if err != nil || e.Steps == nil {
		return true, err
	}
	text, err := sqlform.Steps(db.Crypt, a.N, e.Steps)
	if err == nil {
		_, err = tx.ExecContext(ctx, db.SQL.ClaimSteps, a.N, text, e.Stepped)
	}
	return true, err
}

func (sqliteClaims) retake(ctx context.Context, s *database.DB, numbers []int64, from []store.Token, to store.Token) (all []store.Reclaimed, err error) {
	tokens := sqlform.JSON(from)
	err = s.Write(ctx, func(tx *sql.Tx) error {
		all = make([]store.Reclaimed, len(numbers))
		for i, n := range numbers {
			changed, err := database.Affected(tx.ExecContext(ctx, s.SQL.Reclaim, int64(to), n, tokens))
			if err != nil {
				return err
			}
			all[i].Taken = changed == 1
			if err := tx.QueryRowContext(ctx, s.SQLite.StateOf, n).Scan(&all[i].State); err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		return nil
	})
	return all, err
}

func (sqliteClaims) Look(ctx context.Context, s *database.DB, tx *sql.Tx, claims []store.Claim, stands func(k int, done bool)) error {
	for i, c := range claims {
		var one int
		switch err := tx.QueryRowContext(ctx, s.SQL.Look, c.Number, int64(c.Token)).Scan(&one); {
		case err == nil:
			stands(i, false)
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
	}
	return nil
}

func (sqliteClaims) Close(ctx context.Context, s *database.DB, tx *sql.Tx, endings []store.ClaimEnding) error {
	for i := range endings {
		one := endings[i]
		one.Call = store.CallNone // a batch makes no calls
		stood, err := endClaim(ctx, s, tx, &one)
		if err != nil {
			return err
		}
		if !stood {
			return errClaimLost
		}
	}
	return nil
}
