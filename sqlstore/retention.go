package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// countedDay bounds how many markers of a day are counted.
const countedDay = 100_000

// Retain implements store.Reaper. In PostgreSQL an index that is missing is a fault of
// the schema: without it each look for what is due reads all markers.
func (s *Store) Retain(ctx context.Context, r store.Retention) error {
	err := s.notDated(ctx, s.db, r.Consumer)
	if err != nil {
		return s.answer("retention", err)
	}
	if r.Keep > 0 || r.Bodies > 0 {
		if err := s.indexed(ctx, (*Store).ofReaper); err != nil {
			return err
		}
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, s.sql.Retain, []byte(r.Consumer), r.Keep.Milliseconds(), r.Bodies.Milliseconds(),
			ceilMilliseconds(r.Horizon), sqlform.Plain(r.Why), r.Off)
		return err
	})
	if err == nil {
		err = s.makeDays(ctx)
	}
	return s.answer("retention", err)
}

// ceilMilliseconds rounds up: a horizon is not to seem shorter than it is.
func ceilMilliseconds(d time.Duration) int64 {
	return (d + time.Millisecond - 1).Milliseconds()
}

// Progressed implements store.Reaper.
func (s *Store) Progressed(ctx context.Context, consumer string, lanes []source.LaneAge) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		for _, l := range lanes {
			if _, err := tx.ExecContext(ctx, s.sql.Age, []byte(consumer), sqlform.Plain(l.Lane), microsecondsOf(l.Oldest)); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, s.sql.Progress, []byte(consumer))
		return err
	})
	if err == nil {
		err = s.makeDays(ctx)
	}
	return s.answer("progress", err)
}

// latest is a time that every database can hold: a producer's clock may say anything.
var latest = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// microsecondsOf is a time as a statement takes it; nil for none.
func microsecondsOf(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return min(max(t.UnixMicro(), 0), latest)
}

// ForgetLane implements store.Reaper.
func (s *Store) ForgetLane(ctx context.Context, consumer, lane string, a store.Act) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, s.sql.ForgetAge, []byte(consumer), sqlform.Plain(lane))
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, sqlform.NoLane(consumer, lane))
		}
		return s.record(ctx, tx, a, 0, "done")
	})
	return s.answer("forget a lane", err)
}

// Retentions implements store.Reaper.
func (s *Store) Retentions(ctx context.Context, consumer string) ([]store.StoredRetention, error) {
	all, err := s.retentions(ctx, consumer)
	for i := range all {
		if err == nil {
			err = s.measure(ctx, &all[i])
		}
	}
	if err != nil {
		return nil, s.blameless("retention", err)
	}
	return all, nil
}

func (s *Store) retentions(ctx context.Context, consumer string) (all []store.StoredRetention, err error) {
	rows, err := s.db.QueryContext(ctx, s.sql.Retentions, bytesOrNull(consumer))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r store.StoredRetention
		var name []byte
		var keep, bodies, horizon, progress int64
		var oldest, cutoff, low sql.NullInt64
		if err := rows.Scan(&name, &keep, &bodies, &horizon, &r.Why, &r.Off, &progress, &r.Held, &oldest, &cutoff, &low); err != nil {
			return nil, err
		}
		r.Consumer, r.Keep, r.Bodies, r.Horizon = string(name), milli(keep), milli(bodies), milli(horizon)
		r.Progress, r.Oldest, r.Cutoff, r.Low = time.UnixMicro(progress), moment(oldest), moment(cutoff), moment(low)
		all = append(all, r)
	}
	return all, rows.Err()
}

func milli(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// moment is a time that may be missing.
func moment(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64)
}

// measure adds what is counted or estimated.
func (s *Store) measure(ctx context.Context, r *store.StoredRetention) error {
	s, err := s.ofConsumer(ctx, r.Consumer)
	if err != nil {
		return err
	}
	name := []byte(r.Consumer)
	if err := s.db.QueryRowContext(ctx, s.sql.LastDay, name, countedDay).Scan(&r.LastDay); err != nil {
		return err
	}
	err = s.db.QueryRowContext(ctx, s.sql.MarkerBytes).Scan(&r.MarkerBytes)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if s.days != nil {
		if r.Days, err = s.days.kept(ctx, r.Cutoff); err != nil {
			return err
		}
	}
	if r.Cutoff.IsZero() {
		return nil
	}
	var first sql.NullInt64
	err = s.db.QueryRowContext(ctx, s.sql.FirstDue, name, r.Cutoff.UnixMicro()).Scan(&first)
	r.First = moment(first)
	return err
}

// Removed implements store.Reaper.
func (s *Store) Removed(ctx context.Context, consumer string) (time.Time, error) {
	if err := s.notDated(ctx, s.db, consumer); err != nil {
		return time.Time{}, s.answer("retention", err)
	}
	var low sql.NullInt64
	err := s.db.QueryRowContext(ctx, s.sql.Removed, []byte(consumer)).Scan(&low)
	return moment(low), s.answer("retention", err)
}

// Advance implements store.Reaper.
func (s *Store) Advance(ctx context.Context, consumer string) (to time.Time, err error) {
	if s, err = s.ofConsumer(ctx, consumer); err != nil {
		return time.Time{}, err
	}
	if err := s.indexed(ctx, (*Store).ofReaper); err != nil {
		return time.Time{}, err
	}
	var at sql.NullInt64
	err = s.write(ctx, func(tx *sql.Tx) error {
		if s.sqlite != nil {
			if _, err := tx.ExecContext(ctx, s.sql.Advance, []byte(consumer)); err != nil {
				return err
			}
			return tx.QueryRowContext(ctx, s.sqlite.Advanced, []byte(consumer)).Scan(&at)
		}
		return tx.QueryRowContext(ctx, s.sql.Advance, []byte(consumer)).Scan(&at)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = s.whyNot(ctx, consumer)
	}
	if err == nil {
		err = s.advanceDays(ctx, at.Int64)
	}
	return moment(at), s.answer("retention", err)
}

// whyNot says why nothing of a consumer may be removed.
func (s *Store) whyNot(ctx context.Context, consumer string) error {
	all, err := s.retentions(ctx, consumer)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return sqlform.NothingKept(consumer)
	}
	if err := sqlform.MayReap(all[0].Retention, false); err != nil {
		return err
	}
	return fmt.Errorf("the retention of consumer %q was changed while it was read; try again: %w", consumer, semel.ErrState)
}

// scopesAtOnce is how many scopes one statement asks for; a batch has mostly one.
const scopesAtOnce = 1000

// lows are the low-water marks of the scopes of those marks that ask, by scope.
func (l lists) lows(ctx context.Context, marks []store.Mark) (map[int64]sqlform.Low, error) {
	scopes := sqlform.Aged(marks)
	if len(scopes) == 0 {
		return nil, nil
	}
	lows := map[int64]sqlform.Low{}
	for chunk := range slices.Chunk(scopes, scopesAtOnce) {
		if err := l.lowsOf(ctx, anys(chunk), lows); err != nil {
			return nil, err
		}
	}
	return lows, nil
}

func (l lists) lowsOf(ctx context.Context, scopes []any, lows map[int64]sqlform.Low) error {
	text, args := l.store.bulk(l.store.sql.Low, 1, scopes)
	rows, err := l.tx.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var scope, before, now int64
		if err := rows.Scan(&scope, &before, &now); err != nil {
			return err
		}
		lows[scope] = sqlform.Low{Before: time.UnixMicro(before), Now: time.UnixMicro(now)}
	}
	return rows.Err()
}

// judgeAges judges which fresh marks are older than what is kept. It is a statement
// behind the one that marks: what that waited for may be the end of a reaper, whose
// low-water mark a statement that began before it does not see.
func (l lists) judgeAges(ctx context.Context, marks []store.Mark, verdicts []store.Verdict) error {
	lows, err := l.lows(ctx, marks)
	if err == nil {
		sqlform.JudgeAges(marks, lows, verdicts)
	}
	return err
}
