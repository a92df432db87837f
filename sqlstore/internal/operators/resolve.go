package operators

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/sqlstore/internal/daily"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/inbox"
	"github.com/semel-go/semel/sqlstore/internal/marking"
	"github.com/semel-go/semel/sqlstore/internal/ordering"
	"github.com/semel-go/semel/store"
)

// Resolve implements admin.Resolver.
func (s *Store) Resolve(ctx context.Context, found admin.Resolution, a store.Act, rows ...store.RowRevision) []error {
	of := rowChange{verb: "resolve", act: a, result: found.String(), rows: rows}
	if err := found.Fits(); err != nil {
		return of.repeatError(err)
	}
	of.judge = func(r *actedRow) error {
		if err := admin.MayAct(admin.RowResolved, r.toStoredRow(), r.due); err != nil {
			return err
		}
		if found == admin.ResolvedDone {
			return r.mayTakeMarker(nil) // the effect exists, so the state of the other rows makes no difference
		}
		return r.mayTakeMarker(r.Others)
	}
	of.change = func(ctx context.Context, s *database.DB, tx *sql.Tx, rows []*actedRow) error {
		if err := takeMarkers(ctx, s, tx, rows...); err != nil {
			return err
		}
		if found == admin.ResolvedDone {
			return complete(ctx, s, tx, rows)
		}
		return callAnew(ctx, s, tx, rows)
	}
	return of.apply(ctx, s.db)
}

// complete ends rows whose effects exist, and the markers of these rows. The markers must belong to the rows.
func complete(ctx context.Context, db *database.DB, tx *sql.Tx, rows []*actedRow) error {
	if err := setAll(ctx, tx, rows, db.SQL.CompleteRows); err != nil {
		return err
	}
	if err := turnAll(ctx, db, tx, rows, store.Applied); err != nil {
		return err
	}
	return ordering.LeaveLines(ctx, db, tx, firstOfLines(rows))
}

// callAnew schedules rows to run as if no call had been made for these rows.
func callAnew(ctx context.Context, db *database.DB, tx *sql.Tx, rows []*actedRow) error {
	if err := setAll(ctx, tx, rows, db.SQL.RequeueRows, string(store.StateFailedRetryable)); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, db.SQL.ForgetCalls, database.ActedNumbers(numbersOf(rows)...))
	return err
}

// Skip implements admin.Lines.
func (s *Store) Skip(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	judge := func(r *actedRow) error { return admin.MaySkip(r.toStoredRow()) }
	change := func(ctx context.Context, s *database.DB, tx *sql.Tx, rows []*actedRow) error {
		if err := setAll(ctx, tx, rows, s.SQL.SkipRows); err != nil {
			return err
		}
		return ordering.LeaveLines(ctx, s, tx, firstOfLines(rows))
	}
	of := rowChange{verb: "skip", act: a, rows: rows, judge: judge, change: change}
	for some := range slices.Chunk(rows, mostActed) {
		// A row that was written while the clock was ahead may wait too long, so Skip first shortens the wait of the
		// row.
		if _, _, err := inbox.CutAhead(ctx, s.db, sqlform.JSON(database.NumbersSeen(some))); err != nil {
			return of.repeatError(s.db.Answer("skip", err))
		}
	}
	return of.apply(ctx, s.db)
}

// SkipTo implements admin.Streams.
func (s *Store) SkipTo(ctx context.Context, of admin.StoredStream, to int64, a store.Act) error {
	db, err := daily.OfActs(ctx, s.db, of.Consumer)
	if err != nil {
		return err
	}
	scope, err := marking.New(db).Scope(ctx, of.Consumer, of.Source, of.Generation)
	if err != nil {
		return err
	}
	err = db.Write(ctx, func(tx *sql.Tx) error {
		var last int64
		err := tx.QueryRowContext(ctx, db.SQL.Stream, []byte(of.Consumer), []byte(of.Source), of.Generation, []byte(of.Name)).Scan(&last)
		if errors.Is(err, sql.ErrNoRows) || err == nil && (last != of.Last || to <= last) {
			return fmt.Errorf("stream %q: %w", of.Name, semel.ErrChanged)
		}
		if err != nil {
			return err
		}
		if err := ordering.SkipStream(ctx, db, tx, &streams.Stream{Scope: scope, Name: []byte(of.Name), Last: to}); err != nil {
			return err
		}
		return db.Record(ctx, tx, a, of.Row, "done")
	})
	return db.Answer("skip", err)
}
