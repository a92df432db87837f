package reaper

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore/internal/daily"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/ordering"
	"github.com/semel-go/semel/store"
)

// The largest number of markers of one day that is counted.
const countedDay = 100_000

// Retain implements store.Reaper. In PostgreSQL, a missing index is a fault of the schema: without the index, each
// search for old markers would read all markers.
func (s *Store) Retain(ctx context.Context, r store.Retention) error {
	err := daily.NotDated(ctx, s.db, s.db.Pool, r.Consumer)
	if err != nil {
		return s.db.Answer("retention", err)
	}
	if r.Keep > 0 || r.Bodies > 0 {
		if err := s.db.Indexed(ctx, (*database.DB).OfReaper); err != nil {
			return err
		}
	}
	err = s.db.Exec(ctx, s.db.SQL.Retain, []byte(r.Consumer), r.Keep.Milliseconds(), r.Bodies.Milliseconds(),
		ceilMilliseconds(r.Horizon), sqlform.Plain(r.Why), r.Off)
	if err == nil {
		err = daily.MakeDays(ctx, s.db)
	}
	return s.db.Answer("retention", err)
}

// ceilMilliseconds converts a duration to milliseconds and rounds up, so that a retention does not become shorter.
func ceilMilliseconds(d time.Duration) int64 {
	return (d + time.Millisecond - 1).Milliseconds()
}

// Progressed implements store.Reaper.
func (s *Store) Progressed(ctx context.Context, consumer string, lanes []source.LaneAge) error {
	err := s.db.Write(ctx, func(tx *sql.Tx) error {
		for _, l := range lanes {
			if _, err := tx.ExecContext(ctx, s.db.SQL.Age, []byte(consumer), sqlform.Plain(l.Lane), database.MicrosecondsOf(l.Oldest)); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, s.db.SQL.Progress, []byte(consumer))
		return err
	})
	if err == nil {
		err = daily.MakeDays(ctx, s.db)
	}
	return s.db.Answer("progress", err)
}

// ForgetLane implements store.Reaper.
func (s *Store) ForgetLane(ctx context.Context, consumer, lane string, a store.Act) error {
	err := s.db.Write(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, s.db.SQL.ForgetAge, []byte(consumer), sqlform.Plain(lane))
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, sqlform.NoLane(consumer, lane))
		}
		return s.db.Record(ctx, tx, a, 0, "done")
	})
	return s.db.Answer("forget a lane", err)
}

// Retentions implements store.Reaper.
func (s *Store) Retentions(ctx context.Context, consumer string) ([]store.StoredRetention, error) {
	all, err := retentions(ctx, s.db, consumer)
	for i := range all {
		if err == nil {
			err = measure(ctx, s.db, &all[i])
		}
	}
	if err != nil {
		return nil, s.db.Blameless("retention", err)
	}
	return all, nil
}

func retentions(ctx context.Context, s *database.DB, consumer string) (all []store.StoredRetention, err error) {
	return database.List(ctx, s.Pool, s.SQL.Retentions, func(rows *sql.Rows) (store.StoredRetention, error) {
		var r store.StoredRetention
		var name []byte
		var keep, bodies, horizon, progress int64
		var oldest, cutoff, low sql.NullInt64
		err := rows.Scan(&name, &keep, &bodies, &horizon, &r.Why, &r.Off, &progress, &r.Held, &oldest, &cutoff, &low)
		r.Consumer, r.Keep, r.Bodies, r.Horizon = string(name), database.Milli(keep), database.Milli(bodies), database.Milli(horizon)
		r.Progress, r.Oldest, r.Cutoff, r.Low = time.UnixMicro(progress), database.Moment(oldest), database.Moment(cutoff), database.Moment(low)
		return r, err
	}, ordering.BytesOrNull(consumer))
}

// measure sets the fields that must be counted or estimated.
func measure(ctx context.Context, s *database.DB, r *store.StoredRetention) error {
	s, err := daily.OfConsumer(ctx, s, r.Consumer)
	if err != nil {
		return err
	}
	name := []byte(r.Consumer)
	if err := s.Pool.QueryRowContext(ctx, s.SQL.LastDay, name, countedDay).Scan(&r.LastDay); err != nil {
		return err
	}
	err = s.Pool.QueryRowContext(ctx, s.SQL.MarkerBytes).Scan(&r.MarkerBytes)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if s.Days != nil {
		if r.Days, err = daily.Kept(ctx, s.Days, r.Cutoff); err != nil {
			return err
		}
	}
	if r.Cutoff.IsZero() {
		return nil
	}
	var first sql.NullInt64
	err = s.Pool.QueryRowContext(ctx, s.SQL.FirstDue, name, r.Cutoff.UnixMicro()).Scan(&first)
	r.First = database.Moment(first)
	return err
}

// Removed implements store.Reaper.
func (s *Store) Removed(ctx context.Context, consumer string) (time.Time, error) {
	if err := daily.NotDated(ctx, s.db, s.db.Pool, consumer); err != nil {
		return time.Time{}, s.db.Answer("retention", err)
	}
	var low sql.NullInt64
	err := s.db.Pool.QueryRowContext(ctx, s.db.SQL.Removed, []byte(consumer)).Scan(&low)
	return database.Moment(low), s.db.Answer("retention", err)
}

// Advance implements store.Reaper.
func (s *Store) Advance(ctx context.Context, consumer string) (to time.Time, err error) {
	db, err := daily.OfConsumer(ctx, s.db, consumer)
	if err != nil {
		return time.Time{}, err
	}
	if err := db.Indexed(ctx, (*database.DB).OfReaper); err != nil {
		return time.Time{}, err
	}
	var at sql.NullInt64
	err = db.Write(ctx, func(tx *sql.Tx) error {
		if db.SQLite != nil {
			if _, err := tx.ExecContext(ctx, db.SQL.Advance, []byte(consumer)); err != nil {
				return err
			}
			return tx.QueryRowContext(ctx, db.SQLite.Advanced, []byte(consumer)).Scan(&at)
		}
		return tx.QueryRowContext(ctx, db.SQL.Advance, []byte(consumer)).Scan(&at)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = whyNot(ctx, db, consumer)
	}
	if err == nil {
		err = daily.AdvanceDays(ctx, db, at.Int64)
	}
	return database.Moment(at), db.Answer("retention", err)
}

// whyNot returns an error with the reason why no data of a consumer may be removed.
func whyNot(ctx context.Context, db *database.DB, consumer string) error {
	all, err := retentions(ctx, db, consumer)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return sqlform.NothingKept(consumer)
	}
	if err := sqlform.MayReap(all[0].Retention, false); err != nil {
		return err
	}
	return fmt.Errorf("the retention of consumer %q was changed at the same time; try again: %w", consumer, semel.ErrState)
}
