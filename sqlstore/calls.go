package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// StartCalls implements store.Leases.
func (s *Store) StartCalls(ctx context.Context, claims []store.Claim, lease time.Duration) ([]store.CallStarted, error) {
	all, err := claimsOf(s).calls(ctx, s, claims, lease)
	return all, s.answer("start of calls", err)
}

func (postgresClaims) calls(ctx context.Context, s *Store, claims []store.Claim, lease time.Duration) ([]store.CallStarted, error) {
	rows, err := s.db.QueryContext(ctx, s.postgres.StartCalls, sqlform.ClaimsArgument(claims), lease.Milliseconds())
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

func (sqliteClaims) calls(ctx context.Context, s *Store, claims []store.Claim, lease time.Duration) (all []store.CallStarted, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		all = make([]store.CallStarted, len(claims))
		for i, c := range claims {
			var since int64
			err := tx.QueryRowContext(ctx, s.sqlite.StartCall, c.Number, int64(c.Token), lease.Milliseconds()).Scan(&all[i].Started, &all[i].Finished, &since, &all[i].Again)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			all[i].Stands, all[i].Since = err == nil, calls.Ago(time.Duration(since)*time.Millisecond)
		}
		return nil
	})
	return all, err
}

// Resolve implements admin.Resolver.
func (s *Store) Resolve(ctx context.Context, found admin.Resolution, a store.Act, rows ...store.RowRevision) []error {
	of := acting{verb: "resolve", act: a, result: found.String(), rows: rows}
	if err := found.Fits(); err != nil {
		return of.none(err)
	}
	of.judge = func(r *actedRow) error {
		if err := admin.MayAct(store.RowResolved, r.stored(), r.due); err != nil {
			return err
		}
		if found == admin.ResolvedDone {
			return r.mayTakeMarker(nil) // the effect exists, whatever became of the other rows
		}
		return r.mayTakeMarker(r.others)
	}
	of.change = func(ctx context.Context, s *Store, tx *sql.Tx, rows []*actedRow) error {
		if err := s.takeMarkers(ctx, tx, rows...); err != nil {
			return err
		}
		if found == admin.ResolvedDone {
			return s.complete(ctx, tx, rows)
		}
		return s.callAnew(ctx, tx, rows)
	}
	return of.carry(ctx, s)
}

// complete ends rows whose effects exist, and their markers, which belong to the rows.
func (s *Store) complete(ctx context.Context, tx *sql.Tx, rows []*actedRow) error {
	if err := s.setAll(ctx, tx, rows, s.sql.CompleteRows); err != nil {
		return err
	}
	if err := s.turnAll(ctx, tx, rows, store.Applied); err != nil {
		return err
	}
	return s.leaveLines(ctx, tx, firstOfLines(rows))
}

// callAnew makes rows due as if no call had been made for them.
func (s *Store) callAnew(ctx context.Context, tx *sql.Tx, rows []*actedRow) error {
	if err := s.setAll(ctx, tx, rows, s.sql.RequeueRows, string(store.StateFailedRetryable)); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, s.sql.ForgetCalls, actedNumbers(numbersOf(rows)...))
	return err
}
