package daily

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
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// MakeDays creates the missing days up to three days after today. Attaching a day does not
// lock out transactions that mark. The mark up to which ids are kept is raised in a later
// transaction, so that a process that reads the mark also sees the day.
func MakeDays(ctx context.Context, db *database.DB) error {
	if db.Days == nil {
		return nil
	}
	d := db.Days
	for made := ""; ; {
		w, err := wanted(ctx, d, db.Pool)
		if err != nil || w == nil {
			return err
		}
		if w.name == made {
			return fmt.Errorf("the day %s was created, but the end of the kept days was not raised: something prevents %sdated from being written, such as a trigger; semel migrate status names it: %w", w.name, db.Prefix, semel.ErrSchema)
		}
		made = w.name
		if err := db.Write(ctx, func(tx *sql.Tx) error { return createDay(ctx, d, tx, w) }); err != nil {
			return err
		}
		if err := db.Exec(ctx, d.SQL.RaiseHigh, w.next, w.to); err != nil {
			return err
		}
	}
}

// day is a partition that exists or is to be created.
type day struct {
	name, next string
	from, to   []byte
}

// wanted returns the first missing day, nil if there is none.
func wanted(ctx context.Context, d *database.Days, db database.Queryer) (*day, error) {
	var w day
	err := db.QueryRowContext(ctx, d.SQL.Wanted).Scan(&w.name, &w.from, &w.to, &w.next)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &w, err
}

// createDay creates a day unless it exists.
func createDay(ctx context.Context, d *database.Days, tx *sql.Tx, w *day) error {
	if _, err := tx.ExecContext(ctx, d.SQL.Keeping); err != nil {
		return err
	}
	stand, err := standing(ctx, d, tx)
	if err != nil {
		return err
	}
	if covered(stand, w) {
		return nil // another process, or an operator, has created it
	}
	names := strings.NewReplacer("{day}", w.name, "{from}", `\x`+hex.EncodeToString(w.from), "{to}", `\x`+hex.EncodeToString(w.to))
	for _, text := range []string{d.SQL.CreateDay, d.SQL.AttachDay} {
		if _, err := tx.ExecContext(ctx, names.Replace(text)); err != nil {
			return err
		}
	}
	return nil
}

// covered reports whether the partitions cover the day.
func covered(stand []day, w *day) bool {
	return slices.ContainsFunc(stand, func(p day) bool { return bytes.Compare(p.from, w.from) <= 0 && bytes.Compare(p.to, w.to) >= 0 })
}

// standing returns the existing partitions, ordered by their begin.
func standing(ctx context.Context, d *database.Days, tx *sql.Tx) ([]day, error) {
	return database.List(ctx, tx, d.SQL.Days, func(rows *sql.Rows) (day, error) {
		var p day
		err := rows.Scan(&p.name, &p.from, &p.to)
		return p, err
	})
}

// AdvanceDays raises the mark below which ids are no longer looked up.
func AdvanceDays(ctx context.Context, db *database.DB, cutoff int64) error {
	if db.Days == nil {
		return nil
	}
	if err := MakeDays(ctx, db); err != nil {
		return err
	}
	return db.Exec(ctx, db.Days.SQL.RaiseLow, cutoff)
}

// Kept returns statistics of the existing days.
func Kept(ctx context.Context, d *database.Days, cutoff time.Time) (k store.MarkerDays, err error) {
	var first sql.NullInt64
	err = d.DB.Pool.QueryRowContext(ctx, d.SQL.MarkerDays, database.MicrosecondsOf(cutoff)).Scan(&k.Kept, &first, &k.Due)
	k.First = database.Moment(first)
	return k, err
}

// dropTries is how often one call of Reap tries to drop days that are locked.
const dropTries = 3

// ReapDays removes rows of days below the low mark and, at the start of a pass, drops these
// days. A day that is in use, or contains an unfinished message, is left for the next pass.
func ReapDays(ctx context.Context, db *database.DB, o store.Reaping, done *store.Reaped) error {
	if o.After != (store.ReapMark{}) {
		return nil
	}
	if o.DryRun {
		return dryDays(ctx, db, o.Consumer, done)
	}
	if err := reapRows(ctx, db, o.Most, done); err != nil {
		return err
	}
	if err := reapResults(ctx, db, o.Most); err != nil {
		return err
	}
	for range dropTries {
		dropped, err := dropDays(ctx, db)
		done.Days += dropped
		if err == nil || db.Classify(err) != store.ClassContended {
			return err
		}
	}
	return nil
}

// dryDays counts the days that would be dropped now.
func dryDays(ctx context.Context, db *database.DB, consumer string, done *store.Reaped) error {
	err := db.Write(ctx, func(tx *sql.Tx) error {
		var cutoff int64
		if err := tx.QueryRowContext(ctx, db.SQL.Advance, []byte(consumer)).Scan(&cutoff); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, db.Days.SQL.RaiseLow, cutoff); err != nil {
			return err
		}
		due, err := dueDays(ctx, db.Days, tx)
		for i := 0; i < len(due) && err == nil; i++ {
			var holds bool
			if holds, err = dayHolds(ctx, db.Days, tx, due[i]); err == nil && !holds {
				done.Days++
			}
		}
		if err == nil {
			err = database.ErrDry
		}
		return err
	})
	if errors.Is(err, database.ErrDry) || errors.Is(err, sql.ErrNoRows) { // no row: nothing may be removed
		return nil
	}
	return err
}

func reapRows(ctx context.Context, db *database.DB, most int, done *store.Reaped) error {
	return db.Write(ctx, func(tx *sql.Tx) error {
		n, err := database.Affected(tx.ExecContext(ctx, db.Days.SQL.ReapEnded, most))
		done.Rows += n
		return err
	})
}

// resultRounds limits the slices of results that a pass removes. Without a limit, a consumer
// with many results would not get its days dropped.
const resultRounds = 1000

// reapResults removes the results of markers in days below the low mark.
func reapResults(ctx context.Context, db *database.DB, most int) error {
	for range resultRounds {
		var n int64
		err := db.Write(ctx, func(tx *sql.Tx) (err error) {
			n, err = database.Affected(tx.ExecContext(ctx, db.Days.SQL.ReapResults, most))
			return err
		})
		if err != nil || n < int64(most) {
			return err
		}
	}
	return nil
}

// dropDays drops the days that end at or below the low mark, each in its own transaction. The
// transaction waits for a lock only briefly, because other transactions wait behind it.
func dropDays(ctx context.Context, db *database.DB) (dropped int64, err error) {
	due, err := listDueDays(ctx, db)
	if err != nil {
		return 0, err
	}
	var used error // a locked day does not stop the others
	for _, p := range due {
		var gone bool
		err := db.Write(ctx, func(tx *sql.Tx) (err error) {
			gone, err = drop(ctx, db.Days, tx, p)
			return err
		})
		switch {
		case err != nil && db.Classify(err) != store.ClassContended:
			return dropped, err
		case err != nil:
			used = err
		case gone:
			dropped++
		}
	}
	return dropped, used
}

// listDueDays returns the days that end at or below the low mark.
func listDueDays(ctx context.Context, db *database.DB) (due []day, err error) {
	err = db.Write(ctx, func(tx *sql.Tx) error {
		due, err = dueDays(ctx, db.Days, tx)
		return err
	})
	return due, err
}

func dueDays(ctx context.Context, d *database.Days, tx *sql.Tx) (due []day, err error) {
	var low []byte
	if err := tx.QueryRowContext(ctx, d.SQL.Below).Scan(&low); err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, d.SQL.Hexadecimal); err != nil {
		return nil, err
	}
	all, err := standing(ctx, d, tx)
	for _, p := range all {
		if bytes.Compare(p.to, low) <= 0 {
			due = append(due, p)
		}
	}
	return due, err
}

// drop drops a daily partition that contains no unfinished message. drop checks that before it locks
// the table, so that no transaction waits for a day that stays, and again when the lock prevents
// writes.
func drop(ctx context.Context, d *database.Days, tx *sql.Tx, p day) (bool, error) {
	var settings [3]sql.NullString
	var alone bool
	if err := tx.QueryRowContext(ctx, d.SQL.Impatience).Scan(&settings[0], &settings[1], &settings[2], &alone); err != nil || !alone {
		return false, err
	}
	if holds, err := dayHolds(ctx, d, tx, p); err != nil || holds {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, d.SQL.LockTable); err != nil {
		return false, err
	}
	if holds, err := dayHolds(ctx, d, tx, p); err != nil || holds {
		return false, err
	}
	_, err := tx.ExecContext(ctx, strings.Replace(d.SQL.DropDay, "{table}", p.name, 1))
	return err == nil, err
}

func dayHolds(ctx context.Context, d *database.Days, tx *sql.Tx, p day) (holds bool, err error) {
	err = tx.QueryRowContext(ctx, d.SQL.Holds, p.from, p.to).Scan(&holds)
	return holds, err
}
