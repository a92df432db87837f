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
	all, err := s.dialect.claims.calls(ctx, s, claims, lease)
	return all, s.answer("start of calls", err)
}

func (postgresClaims) calls(ctx context.Context, s *Store, claims []store.Claim, lease time.Duration) ([]store.CallStarted, error) {
	rows, err := s.db.QueryContext(ctx, s.postgres.StartCalls, ClaimsArgument(claims), lease.Milliseconds())
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
func (s *Store) Resolve(ctx context.Context, number, revision int64, found admin.Resolution, a store.Act) error {
	if err := found.Fits(); err != nil {
		return err
	}
	s, err := s.ofRow(ctx, number)
	if err != nil {
		return err
	}
	return s.answer("resolve", s.write(ctx, func(tx *sql.Tx) error {
		r, err := s.look(ctx, tx, number, revision)
		if err != nil {
			return err
		}
		if err := admin.MayResolve(number, r.state, r.unknown); err != nil {
			return err
		}
		if err := s.readTwins(ctx, tx, r); err != nil {
			return err
		}
		others := r.others
		if found == admin.ResolvedDone {
			others = nil // that it is done is so whatever became of them
		}
		if err := r.mayTakeMarker(others); err != nil {
			return err
		}
		if err := s.takeMarkers(ctx, tx, r); err != nil {
			return err
		}
		if found == admin.ResolvedDone {
			err = s.complete(ctx, tx, r)
		} else {
			err = s.callAnew(ctx, tx, r)
		}
		if err != nil {
			return err
		}
		return s.record(ctx, tx, a, number, found.String())
	}))
}

// complete ends a row whose effect is there, and its marker, which is the row's.
func (s *Store) complete(ctx context.Context, tx *sql.Tx, r *actedRow) error {
	if err := s.set(ctx, tx, r, s.sql.CompleteRow); err != nil {
		return err
	}
	if err := s.turnMarkers(ctx, tx, turn{r, sqlform.Marker{Outcome: int64(store.Applied), Version: r.version, Sum: r.sum}}); err != nil {
		return err
	}
	return s.leaveLines(ctx, tx, []int64{r.number})
}

// callAnew makes a row due as if no call had been made for it.
func (s *Store) callAnew(ctx context.Context, tx *sql.Tx, r *actedRow) error {
	if err := s.setAll(ctx, tx, []*actedRow{r}, s.sql.RequeueRows, string(store.StateFailedRetryable)); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, s.sql.ForgetCalls, r.number)
	return err
}
