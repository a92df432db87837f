// Package daily keeps the markers of a consumer in a table with a partition for each day, and moves
// them there.
package daily

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/sqlstore/internal/database"
)

// OpenDays returns the store of a consumer whose markers lie in days.
func OpenDays(ctx context.Context, db *database.DB, o database.Dated) (*database.DB, error) {
	if err := keepsDays(db, &o); err != nil {
		return nil, err
	}
	d := &database.Days{DB: db, Dated: o}
	err := register(ctx, d)
	if err == nil {
		err = d.Load()
	}
	if err != nil {
		return nil, db.Answer("markers by day", err)
	}
	own, err := d.View()
	if err != nil {
		return nil, err
	}
	if err := MakeDays(ctx, own); err != nil {
		return nil, db.Answer("markers by day", err)
	}
	return own, nil
}

// keepsDays says why the store cannot keep such days.
func keepsDays(db *database.DB, o *database.Dated) error {
	switch {
	case db.Postgres == nil || !db.MarksAlone() || db.Days != nil:
		return fmt.Errorf("sqlstore: only a store in PostgreSQL that marks in no other table keeps markers by day: %w", semel.ErrUnsupported)
	case database.Ceilings[o.IDTime] == "":
		return fmt.Errorf("sqlstore: markers are kept by day for ids that carry a time, not %v: %w", o.IDTime, semel.ErrUnsupported)
	case o.Consumer == "" || o.Back < 0 || o.Back > database.MostBack:
		return fmt.Errorf("sqlstore: markers by day need the name of a consumer, and 0 to %d days back", database.MostBack)
	}
	return nil
}

// register finds the consumer's number, or makes its table.
func register(ctx context.Context, d *database.Days) error {
	found, err := find(ctx, d, d.DB.Pool)
	if err != nil || found {
		return err
	}
	return d.DB.Write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, d.DB.Postgres.LockDated); err != nil {
			return err
		}
		if found, err := find(ctx, d, tx); err != nil || found {
			return err
		}
		return create(ctx, d, tx)
	})
}

func find(ctx context.Context, d *database.Days, db database.Queryer) (bool, error) {
	number, kind, err := Dated(ctx, d.DB, db, d.Consumer)
	if errors.Is(err, sql.ErrNoRows) {
		number, kind, err = movingTo(ctx, d.DB, db, d.Consumer)
		d.Moving = err == nil
	}
	d.Number = number
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err == nil && kind != d.IDTime.String():
		err = fmt.Errorf("the markers of consumer %q are kept by day for ids of the kind %s, not %v; use that kind, or another consumer's name: %w", d.Consumer, kind, d.IDTime, semel.ErrState)
	}
	return err == nil, err
}

func create(ctx context.Context, d *database.Days, tx *sql.Tx) error {
	// A table of days whose row in dated is gone may be this consumer's: another table would
	// let everything take effect again.
	if err := d.DB.Faults(ctx, d.DB.SQL.LintRows); err != nil {
		return err
	}
	var elsewhere bool
	if err := tx.QueryRowContext(ctx, d.DB.Postgres.UndatedMarkers, []byte(d.Consumer)).Scan(&elsewhere); err != nil {
		return err
	}
	if elsewhere && !d.Move {
		return fmt.Errorf("consumer %q has markers in %smarkers, where a store of days does not look; move them, as docs/operations.md shows under \"Dropping days of markers\": %w", d.Consumer, d.DB.Prefix, semel.ErrState)
	}
	if err := tx.QueryRowContext(ctx, d.DB.Postgres.NewDated, []byte(d.Consumer), d.IDTime.String(), d.Back).Scan(&d.Number); err != nil {
		return err
	}
	if err := d.Load(); err != nil {
		return err
	}
	if err := execAll(ctx, tx, d.SQL.Create, d.SQL.CreateAside, d.SQL.CreateReadable); err != nil {
		return err
	}
	if !elsewhere {
		return nil
	}
	return moveNow(ctx, d, tx)
}

// execAll sends statements one by one, of which a text may hold several.
func execAll(ctx context.Context, tx *sql.Tx, texts ...string) error {
	for _, text := range texts {
		for statement := range strings.SplitSeq(text, ";\n\n") {
			if strings.HasPrefix(statement, "--") {
				continue // a comment of the next
			}
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveNow moves the consumer's markers into its table, of which nobody knows yet.
func moveNow(ctx context.Context, d *database.Days, tx *sql.Tx) error {
	var odd int64
	if err := tx.QueryRowContext(ctx, d.SQL.OddlySpelled, []byte(d.Consumer)).Scan(&odd); err != nil {
		return err
	}
	if odd > 0 {
		return fmt.Errorf("consumer %q has %d markers whose ids are spelled in another case than a store of days spells them, so that their copies would be fresh; keep them where they are: %w", d.Consumer, odd, semel.ErrState)
	}
	for {
		w, err := wanted(ctx, d, tx)
		if err != nil {
			return err
		}
		if w == nil {
			break
		}
		if err := createDay(ctx, d, tx, w); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, d.SQL.RaiseHigh, w.next, w.to); err != nil {
			return err
		}
	}
	for _, statement := range []string{d.SQL.Move, d.SQL.MoveRows} {
		if _, err := tx.ExecContext(ctx, statement, []byte(d.Consumer)); err != nil {
			return err
		}
	}
	return nil
}
