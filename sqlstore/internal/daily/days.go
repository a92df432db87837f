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

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// MakeDays creates the missing daily partitions, up to three days after today. Attaching a partition does not block
// transactions that write markers. A later transaction raises the upper limit of the ids that have a partition. So a
// process that reads the new limit also sees the new partition.
func MakeDays(ctx context.Context, db *database.DB) error {
	if db.Days == nil {
		return nil
	}
	d := db.Days
	for made := ""; ; {
		w, err := firstMissing(ctx, d, db.Pool)
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

// day is a daily partition that exists or must be created.
type day struct {
	name, next string
	from, to   []byte
}

// firstMissing returns the first missing partition; nil if none is missing.
func firstMissing(ctx context.Context, d *database.Days, db database.Queryer) (*day, error) {
	var w day
	err := db.QueryRowContext(ctx, d.SQL.Wanted).Scan(&w.name, &w.from, &w.to, &w.next)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &w, err
}

// createDay creates a partition unless it exists.
func createDay(ctx context.Context, d *database.Days, tx *sql.Tx, w *day) error {
	if _, err := tx.ExecContext(ctx, d.SQL.Keeping); err != nil {
		return err
	}
	stand, err := listPartitions(ctx, d, tx)
	if err != nil {
		return err
	}
	if isCovered(stand, w) {
		return nil // another process, or an operator, has created the partition
	}
	names := strings.NewReplacer("{day}", w.name, "{from}", `\x`+hex.EncodeToString(w.from), "{to}", `\x`+hex.EncodeToString(w.to))
	for _, text := range []string{d.SQL.CreateDay, d.SQL.AttachDay} {
		if _, err := tx.ExecContext(ctx, names.Replace(text)); err != nil {
			return err
		}
	}
	return nil
}

// isCovered reports whether one of the existing partitions contains the given day.
func isCovered(existing []day, w *day) bool {
	return slices.ContainsFunc(existing, func(p day) bool { return bytes.Compare(p.from, w.from) <= 0 && bytes.Compare(p.to, w.to) >= 0 })
}

// listPartitions returns the existing partitions, ordered by their begin.
func listPartitions(ctx context.Context, d *database.Days, tx *sql.Tx) ([]day, error) {
	return database.List(ctx, tx, d.SQL.Days, func(rows *sql.Rows) (day, error) {
		var p day
		err := rows.Scan(&p.name, &p.from, &p.to)
		return p, err
	})
}

// AdvanceDays raises the limit below which the store no longer looks up ids.
func AdvanceDays(ctx context.Context, db *database.DB, cutoff int64) error {
	if db.Days == nil {
		return nil
	}
	if err := MakeDays(ctx, db); err != nil {
		return err
	}
	return db.Exec(ctx, db.Days.SQL.RaiseLow, cutoff)
}

// CountDays sets r.Days to the number of existing partitions.
func CountDays(ctx context.Context, d *database.Days, r *store.StoredRetention) error {
	var first sql.NullInt64
	err := d.DB.Pool.QueryRowContext(ctx, d.SQL.MarkerDays, database.MicrosecondsOf(r.Cutoff)).Scan(&r.Days.Kept, &first, &r.Days.Due)
	r.Days.First = database.Moment(first)
	return err
}

// The number of times that one call of Reap tries to drop locked partitions.
const dropTries = 3

// ReapDays removes the data of partitions whose retention has passed, and drops these partitions in the first
// call of a pass. A partition that is in use, or that contains an unfinished message, is left for the next
// pass.
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

// dryDays counts the partitions that ReapDays would drop now.
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
	if errors.Is(err, database.ErrDry) || errors.Is(err, sql.ErrNoRows) { // without a row, nothing may be removed
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

// A pass removes results in portions, and ends after this number of portions. Without a limit, the partitions of a
// consumer with many new results would never be dropped.
const resultRounds = 1000

// reapResults removes the results that belong to markers in partitions whose retention has passed.
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

// dropDays drops the partitions whose retention has passed, each in a transaction of its own. The transaction
// waits for a lock only briefly, because other transactions must wait as long.
func dropDays(ctx context.Context, db *database.DB) (dropped int64, err error) {
	due, err := listDueDays(ctx, db)
	if err != nil {
		return 0, err
	}
	var used error // a locked partition does not prevent the drop of other partitions
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

// listDueDays returns the partitions whose retention has passed.
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
	all, err := listPartitions(ctx, d, tx)
	for _, p := range all {
		if bytes.Compare(p.to, low) <= 0 {
			due = append(due, p)
		}
	}
	return due, err
}

// drop drops a daily partition that contains no unfinished message. drop checks the messages twice. The first check is
// before the lock of the table, so that no transaction waits for a partition that is not dropped. The second check is
// under the lock, which prevents writes.
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
