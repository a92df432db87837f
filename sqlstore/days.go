package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// makeDays makes what is missing of the days up to three after this one. A day is attached
// without a lock that keeps anybody from marking, and the mark up to which ids are kept is
// raised in a transaction of its own after that, so that whoever reads it finds the day.
func (s *Store) makeDays(ctx context.Context) error {
	if s.days == nil {
		return nil
	}
	d := s.days
	for made := ""; ; {
		w, err := d.wanted(ctx, s.db)
		if err != nil || w == nil {
			return err
		}
		if w.name == made {
			return fmt.Errorf("the day %s was made, and the mark up to which ids are kept stays before it: something keeps %sdated from being written, such as a trigger; semel migrate status names it: %w", w.name, s.prefix, semel.ErrSchema)
		}
		made = w.name
		if err := s.write(ctx, func(tx *sql.Tx) error { return d.make(ctx, tx, w) }); err != nil {
			return err
		}
		if err := s.write(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, d.sql.RaiseHigh, w.next, w.to)
			return err
		}); err != nil {
			return err
		}
	}
}

// day is a partition, or what is to be one.
type day struct {
	name, next string
	from, to   []byte
}

// wanted is the first day that is to be made; nil if none is.
func (d *days) wanted(ctx context.Context, db queries) (*day, error) {
	var w day
	err := db.QueryRowContext(ctx, d.sql.Wanted).Scan(&w.name, &w.from, &w.to, &w.next)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &w, err
}

// make makes a day, unless it stands.
func (d *days) make(ctx context.Context, tx *sql.Tx, w *day) error {
	if _, err := tx.ExecContext(ctx, d.sql.Keeping); err != nil {
		return err
	}
	stand, err := d.standing(ctx, tx)
	if err != nil {
		return err
	}
	if covered(stand, w) {
		return nil // another process was first, or a person was
	}
	names := strings.NewReplacer("{day}", w.name, "{from}", `\x`+hex.EncodeToString(w.from), "{to}", `\x`+hex.EncodeToString(w.to))
	for _, text := range []string{d.sql.CreateDay, d.sql.AttachDay} {
		if _, err := tx.ExecContext(ctx, names.Replace(text)); err != nil {
			return err
		}
	}
	return nil
}

// covered reports whether a day is among the partitions.
func covered(stand []day, w *day) bool {
	return slices.ContainsFunc(stand, func(p day) bool { return bytes.Compare(p.from, w.from) <= 0 && bytes.Compare(p.to, w.to) >= 0 })
}

// standing are the partitions, by where they begin.
func (d *days) standing(ctx context.Context, tx *sql.Tx) ([]day, error) {
	rows, err := tx.QueryContext(ctx, d.sql.Days)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []day
	for rows.Next() {
		var p day
		if err := rows.Scan(&p.name, &p.from, &p.to); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, rows.Err()
}

// advanceDays raises the mark below which ids are not looked for any more.
func (s *Store) advanceDays(ctx context.Context, cutoff int64) error {
	if s.days == nil {
		return nil
	}
	if err := s.makeDays(ctx); err != nil {
		return err
	}
	return s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, s.days.sql.RaiseLow, cutoff)
		return err
	})
}

// kept are the days that stand.
func (d *days) kept(ctx context.Context, cutoff time.Time) (k store.MarkerDays, err error) {
	var first sql.NullInt64
	err = d.store.db.QueryRowContext(ctx, d.sql.MarkerDays, microsecondsOf(cutoff)).Scan(&k.Kept, &first, &k.Due)
	k.First = moment(first)
	return k, err
}

// dropTries is how often a call of Reap tries to drop days that others have locked.
const dropTries = 3

// reapDays removes rows of days below the low mark, and at the beginning of a pass the days
// themselves. One that others use, or that holds what has not ended, is left to the next.
func (s *Store) reapDays(ctx context.Context, o store.Reaping, done *store.Reaped) error {
	if o.After != (store.ReapMark{}) {
		return nil
	}
	if o.DryRun {
		return s.dryDays(ctx, o.Consumer, done)
	}
	if err := s.reapRows(ctx, o.Most, done); err != nil {
		return err
	}
	if err := s.reapResults(ctx, o.Most); err != nil {
		return err
	}
	for range dropTries {
		dropped, err := s.dropDays(ctx)
		done.Days += dropped
		if err == nil || s.Classify(err) != store.ClassContended {
			return err
		}
	}
	return nil
}

// dryDays counts the days that would be dropped now.
func (s *Store) dryDays(ctx context.Context, consumer string, done *store.Reaped) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		var cutoff int64
		if err := tx.QueryRowContext(ctx, s.sql.Advance, []byte(consumer)).Scan(&cutoff); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, s.days.sql.RaiseLow, cutoff); err != nil {
			return err
		}
		due, err := s.days.due(ctx, tx)
		for i := 0; i < len(due) && err == nil; i++ {
			var holds bool
			if holds, err = s.days.holds(ctx, tx, due[i]); err == nil && !holds {
				done.Days++
			}
		}
		if err == nil {
			err = errDry
		}
		return err
	})
	if errors.Is(err, errDry) || errors.Is(err, sql.ErrNoRows) { // no row: nothing may be removed
		return nil
	}
	return err
}

func (s *Store) reapRows(ctx context.Context, most int, done *store.Reaped) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		gone, err := tx.ExecContext(ctx, s.days.sql.ReapEnded, most)
		if err != nil {
			return err
		}
		n, err := gone.RowsAffected()
		done.Rows += n
		return err
	})
}

// resultRounds is how many slices of results a pass removes at most: more would keep the
// days of a consumer from being dropped that has very many.
const resultRounds = 1000

// reapResults removes what was kept beside the markers of days below the low mark.
func (s *Store) reapResults(ctx context.Context, most int) error {
	for range resultRounds {
		var n int64
		err := s.write(ctx, func(tx *sql.Tx) error {
			gone, err := tx.ExecContext(ctx, s.days.sql.ReapResults, most)
			if err == nil {
				n, err = gone.RowsAffected()
			}
			return err
		})
		if err != nil || n < int64(most) {
			return err
		}
	}
	return nil
}

// dropDays drops days that end at or below the low mark, each in a transaction that waits
// for a lock no longer than others may wait behind it.
func (s *Store) dropDays(ctx context.Context) (dropped int64, err error) {
	due, err := s.dueDays(ctx)
	if err != nil {
		return 0, err
	}
	var used error // by others, which keeps no other day
	for _, p := range due {
		var gone bool
		err := s.write(ctx, func(tx *sql.Tx) (err error) {
			gone, err = s.days.drop(ctx, tx, p)
			return err
		})
		switch {
		case err != nil && s.Classify(err) != store.ClassContended:
			return dropped, err
		case err != nil:
			used = err
		case gone:
			dropped++
		}
	}
	return dropped, used
}

// dueDays are the days that end at or below the low mark.
func (s *Store) dueDays(ctx context.Context) (due []day, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		due, err = s.days.due(ctx, tx)
		return err
	})
	return due, err
}

func (d *days) due(ctx context.Context, tx *sql.Tx) (due []day, err error) {
	var low []byte
	if err := tx.QueryRowContext(ctx, d.sql.Below).Scan(&low); err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, d.sql.Hexadecimal); err != nil {
		return nil, err
	}
	all, err := d.standing(ctx, tx)
	for _, p := range all {
		if bytes.Compare(p.to, low) <= 0 {
			due = append(due, p)
		}
	}
	return due, err
}

// drop drops a day that holds nothing that has not ended. It looks before it locks, so that
// nobody waits for a day that stays, and again when nobody can write there any more.
func (d *days) drop(ctx context.Context, tx *sql.Tx, p day) (bool, error) {
	var settings [3]sql.NullString
	var alone bool
	if err := tx.QueryRowContext(ctx, d.sql.Impatience).Scan(&settings[0], &settings[1], &settings[2], &alone); err != nil || !alone {
		return false, err
	}
	if holds, err := d.holds(ctx, tx, p); err != nil || holds {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, d.sql.LockTable); err != nil {
		return false, err
	}
	if holds, err := d.holds(ctx, tx, p); err != nil || holds {
		return false, err
	}
	_, err := tx.ExecContext(ctx, strings.Replace(d.sql.DropDay, "{table}", p.name, 1))
	return err == nil, err
}

func (d *days) holds(ctx context.Context, tx *sql.Tx, p day) (holds bool, err error) {
	err = tx.QueryRowContext(ctx, d.sql.Holds, p.from, p.to).Scan(&holds)
	return holds, err
}
