package registry

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/operators"
	"github.com/semel-go/semel/store"
)

// Generations implements admin.Generations.
func (s *Store) Generations(ctx context.Context, consumer string) ([]admin.StoredGeneration, error) {
	all, err := storedGenerations(ctx, s.db, consumer)
	ahead := false
	for i := range all {
		if all[i].Fenced > admin.LongestFence {
			all[i].Fenced, ahead = admin.LongestFence, true
		}
	}
	if ahead {
		err = errors.Join(err, cutFences(ctx, s.db, consumer))
	}
	return all, err
}

// While a generation is fenced, no batch may use the generation. cutFences shortens the fences of a consumer's
// generations that were set while the database's clock was ahead.
func cutFences(ctx context.Context, db *database.DB, consumer string) error {
	err := db.Write(ctx, func(tx *sql.Tx) error {
		for _, text := range []string{db.SQL.CutFences, db.SQL.CutConfirmed} {
			if _, err := tx.ExecContext(ctx, text, []byte(consumer), admin.LongestFence.Milliseconds()); err != nil {
				return err
			}
		}
		return nil
	})
	return db.Answer("cutting the fences of "+consumer, err)
}

func storedGenerations(ctx context.Context, s *database.DB, consumer string) ([]admin.StoredGeneration, error) {
	all, err := database.List(ctx, s.Pool, s.SQL.Generations, func(rows *sql.Rows) (admin.StoredGeneration, error) {
		var g admin.StoredGeneration
		var since, opened, fenced int64
		err := rows.Scan(&g.Number, &g.State, &since, &opened, &g.By, &g.Why, &fenced)
		g.Since, g.Opened, g.Fenced = database.MomentOf(since), database.MomentOf(opened), time.Duration(fenced)*time.Millisecond
		return g, err
	}, []byte(consumer))
	return all, s.Answer("generations of "+consumer, err)
}

// BeginGenerations implements admin.Generations.
func (s *Store) BeginGenerations(ctx context.Context, consumer string) error {
	all, err := s.Generations(ctx, consumer)
	if err != nil || len(all) > 0 {
		return err
	}
	if _, err = s.db.Changed(ctx, s.db.SQL.FirstGeneration, []byte(consumer)); err != nil {
		return s.db.Blameless("the first generation of "+consumer, err)
	}
	return nil
}

// OpenGeneration implements admin.Generations.
func (s *Store) OpenGeneration(ctx context.Context, consumer string, a store.Act) (number int64, err error) {
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		opened, err := database.ChangedIn(ctx, tx, s.db.SQL.OpenGeneration, []byte(consumer), sqlform.Plain(a.Who), sqlform.Plain(a.Why))
		if err == nil && !opened {
			return fmt.Errorf("consumer %s has no generations, or one is being built already: %w", consumer, semel.ErrState)
		}
		if err != nil {
			return err
		}
		if number, err = building(ctx, s.db, tx, consumer); err != nil {
			return err
		}
		return s.db.Record(ctx, tx, sqlform.OfGeneration(a, consumer, number), 0, "done")
	})
	return number, s.db.Answer("opening a generation of "+consumer, err)
}

// building returns the generation of a consumer that is being built.
func building(ctx context.Context, db *database.DB, tx *sql.Tx, consumer string) (number int64, err error) {
	err = database.EachRow(ctx, tx, db.SQL.Generations, func(rows *sql.Rows) error {
		var n int64
		var state generations.State
		var skipped any
		err := rows.Scan(&n, &state, &skipped, &skipped, &skipped, &skipped, &skipped)
		if state == generations.Building {
			number = n
		}
		return err
	}, []byte(consumer))
	return number, err
}

// FenceGeneration implements admin.Generations. The method first commits the fence, and then waits for the batches that
// have locked the generation's row. With a single transaction, further batches could begin during the wait.
func (s *Store) FenceGeneration(ctx context.Context, consumer string, number int64, most time.Duration) error {
	if most > admin.LongestFence {
		return fmt.Errorf("a fence of %v for generation %d of consumer %s: the maximum is %v", most, number, consumer, admin.LongestFence)
	}
	fenced, err := s.db.Changed(ctx, s.db.SQL.FenceGeneration, []byte(consumer), number, max(most.Milliseconds(), 1))
	if err == nil && !fenced {
		return fmt.Errorf("generation %d of consumer %s is neither active nor being built, or a switch is in progress: %w", number, consumer, semel.ErrState)
	}
	if err == nil {
		fenced, err = s.db.Changed(ctx, s.db.SQL.ConfirmFence, []byte(consumer), number)
	}
	if err == nil && !fenced {
		err = fmt.Errorf("the fence of generation %d of consumer %s ended before all its batches had ended: %w", number, consumer, semel.ErrState)
	}
	return s.db.Answer("fencing a generation of "+consumer, err)
}

// LiftFences implements admin.Generations.
func (s *Store) LiftFences(ctx context.Context, consumer string) error {
	err := s.db.Write(ctx, func(tx *sql.Tx) error { return liftFences(ctx, s.db, tx, consumer) })
	return s.db.Answer("lifting the fences of "+consumer, err)
}

func liftFences(ctx context.Context, db *database.DB, tx *sql.Tx, consumer string) error {
	if _, err := tx.ExecContext(ctx, db.SQL.UnfenceGenerations, []byte(consumer)); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, db.SQL.LiftFences, []byte(consumer))
	return err
}

// SwitchGeneration implements admin.Generations.
func (s *Store) SwitchGeneration(ctx context.Context, consumer string, from, to int64, a store.Act) error {
	err := s.db.Write(ctx, func(tx *sql.Tx) error {
		for _, turn := range []struct {
			number  int64
			is, now generations.State
		}{{from, generations.Active, generations.Old}, {to, generations.Building, generations.Active}} {
			turned, err := database.ChangedIn(ctx, tx, s.db.SQL.TurnGeneration, []byte(consumer), turn.number, int64(turn.is), int64(turn.now))
			if err != nil {
				return err
			}
			if !turned {
				return fmt.Errorf("generation %d of consumer %s is not %v, or its fence has ended: %w", turn.number, consumer, turn.is, semel.ErrState)
			}
		}
		if err := liftFences(ctx, s.db, tx, consumer); err != nil {
			return err
		}
		return s.db.Record(ctx, tx, sqlform.OfGeneration(a, consumer, to), 0, "done")
	})
	return s.db.Answer("switching "+consumer, err)
}

// EndGeneration implements admin.Generations.
func (s *Store) EndGeneration(ctx context.Context, consumer string, number int64, a store.Act) error {
	err := s.db.Write(ctx, func(tx *sql.Tx) error {
		ended, err := database.ChangedIn(ctx, tx, s.db.SQL.EndGeneration, []byte(consumer), number)
		if err == nil && !ended {
			err = fmt.Errorf("generation %d of consumer %s is neither old nor being built: %w", number, consumer, semel.ErrState)
		}
		if err != nil {
			return err
		}
		return s.db.Record(ctx, tx, sqlform.OfGeneration(a, consumer, number), 0, "done")
	})
	return s.db.Answer("dropping a generation of "+consumer, err)
}

// ForgetGeneration implements admin.Generations. The markers are removed last, because the other records are found
// through the markers.
func (s *Store) ForgetGeneration(ctx context.Context, consumer string, number int64, most int) (removed int, err error) {
	all, err := s.Generations(ctx, consumer)
	if err != nil {
		return 0, err
	}
	dropped := false
	for _, g := range all {
		dropped = dropped || g.Number == number && g.State == generations.Dropped
	}
	if !dropped {
		return 0, fmt.Errorf("generation %d of consumer %s is not dropped: %w", number, consumer, semel.ErrState)
	}
	name := admin.GenerationName(consumer, number)
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		removed = 0
		for _, text := range []string{s.db.SQL.ForgetRows, s.db.SQL.ForgetResults, s.db.SQL.ForgetStreams, s.db.SQL.ForgetMarkers} {
			if removed >= most { // the last call removes the edits of removed rows
				return nil
			}
			n, err := database.Affected(tx.ExecContext(ctx, text, []byte(name), most-removed))
			if err != nil {
				return err
			}
			removed += int(n)
		}
		if err := operators.ForgetEdits(ctx, s.db, tx); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, s.db.SQL.ForgetPositions, sqlform.Plain(name))
		return err
	})
	return removed, s.db.Answer("removing a generation of "+consumer, err)
}
