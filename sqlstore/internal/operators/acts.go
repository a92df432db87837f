// Package operators makes the changes of operators to inbox rows. Each change of up to 500 rows is one
// transaction, which also writes the audit records of the change.
package operators

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/daily"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// Store implements the operators' changes in store.Inbox and in package admin.
type Store struct{ db *database.DB }

// New returns the Store of a database.
func New(db *database.DB) *Store { return &Store{db} }

// The largest number of rows that a command changes in one transaction.
const mostActed = 500

// rowChange is an operator's change of any number of rows. Each statement of a transaction changes all rows of
// the transaction.
type rowChange struct {
	verb string // the name of the change in errors
	act  store.Act
	rows []store.RowRevision
	// The result that is written to the audit record of each row. The default is "done".
	result string
	// For each row, an error or nil.
	errs []error
	// The function judge returns an error if the command must not change a row.
	judge func(*actedRow) error
	// The function change writes the rows for which judge returned nil.
	change func(ctx context.Context, s *database.DB, tx *sql.Tx, rows []*actedRow) error
}

// repeatError returns a list that contains the same error for each row.
func (a *rowChange) repeatError(err error) []error {
	errs := make([]error, len(a.rows))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// apply makes an operator's change, and returns an error or nil for each row.
func (a *rowChange) apply(ctx context.Context, s *database.DB) []error {
	a.errs = make([]error, len(a.rows))
	stores, err := daily.OfRows(ctx, s, a.rows)
	if err != nil {
		return a.repeatError(err)
	}
	for own, places := range stores {
		for some := range slices.Chunk(places, mostActed) {
			a.changeRows(ctx, own, some)
		}
	}
	return a.errs
}

// fail sets the given error for each given row that has no error yet.
func (a *rowChange) fail(places []int, err error) {
	for _, i := range places {
		if a.errs[i] == nil {
			a.errs[i] = err
		}
	}
}

// changeRows changes the rows with the given indexes in one transaction. If the transaction fails because of one
// row, the method tries each half of the rows separately, so that one row cannot prevent the change of other rows.
func (a *rowChange) changeRows(ctx context.Context, s *database.DB, places []int) {
	t := &rowTransaction{rowChange: a, store: s, indexes: places}
	err := s.Write(ctx, func(tx *sql.Tx) error { return t.run(ctx, tx) })
	switch {
	case err == nil:
	case len(places) == 1 || !t.mayBeOfOne(ctx, err):
		a.fail(places, s.Answer(a.verb, err))
		return
	default:
		a.changeRows(ctx, s, places[:len(places)/2])
		a.changeRows(ctx, s, places[len(places)/2:])
		return
	}
	if len(t.duplicates) > 0 {
		a.changeRows(ctx, s, t.duplicates)
	}
	for _, i := range t.busy {
		a.changeRows(ctx, s, []int{i})
	}
}

// rowTransaction is one transaction of an operator's change.
type rowTransaction struct {
	*rowChange
	store   *database.DB
	indexes []int
	// The field began is true after the transaction has begun. A later error may be caused by a single row.
	began bool
	// duplicates contains the indexes of rows that have the same identity as an earlier row of the transaction;
	// these rows are changed after the commit. The field busy contains the indexes of rows that are locked or do not
	// exist. Each busy row gets a transaction of its own, so that a transaction that waits for a lock holds no other
	// lock.
	duplicates, busy []int
}

// mayBeOfOne reports whether a single row may have caused an error, so that the other rows can be changed
// without that row. After a COMMIT with an unknown outcome the result is false, and nothing is tried again.
func (t *rowTransaction) mayBeOfOne(ctx context.Context, err error) bool {
	var unknown *database.UnknownError
	if !t.began || ctx.Err() != nil || errors.As(err, &unknown) {
		return false
	}
	return t.store.Classify(err) != store.ClassDown || t.store.Dialect.Coded(err)
}

// run checks the rows, changes the rows that the command may change, and writes the audit records.
func (t *rowTransaction) run(ctx context.Context, tx *sql.Tx) error {
	t.began, t.duplicates, t.busy = true, nil, nil
	found, err := lookAll(ctx, t.store, tx, t.numbers(), len(t.indexes) > 1)
	if err != nil {
		return err
	}
	rows := t.chooseRows(found)
	if err := ReadTwins(ctx, t.store, tx, rows...); err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(r *actedRow) bool {
		t.errs[r.at] = t.judge(r)
		return t.errs[r.at] != nil
	})
	if len(rows) == 0 {
		return nil
	}
	if err := t.change(ctx, t.store, tx, rows); err != nil {
		return err
	}
	return t.store.RecordOn(ctx, tx, t.act, cmp.Or(t.result, "done"), numbersOf(rows)...)
}

func (t *rowTransaction) numbers() []int64 {
	all := make([]int64, len(t.indexes))
	for k, i := range t.indexes {
		all[k] = t.rows[i].Number
	}
	return all
}

// chooseRows returns the rows that this transaction changes. For the other rows, chooseRows stores the reason why they
// are not changed.
func (t *rowTransaction) chooseRows(found map[int64]*actedRow) (rows []*actedRow) {
	type identity struct {
		scope int64
		id    string
	}
	had := map[identity]bool{}
	for _, i := range t.indexes {
		r := found[t.rows[i].Number]
		t.errs[i] = nil
		switch {
		case r == nil && len(t.indexes) > 1:
			t.busy = append(t.busy, i)
			continue
		case r == nil || r.revision != t.rows[i].Revision:
			t.errs[i] = fmt.Errorf("row %d: %w", t.rows[i].Number, semel.ErrChanged)
			continue
		case had[identity{r.scope, string(r.id)}]:
			t.duplicates = append(t.duplicates, i)
			continue
		case r.unread != nil:
			t.errs[i] = r.unread
			continue
		}
		had[identity{r.scope, string(r.id)}] = true
		r.at = i
		rows = append(rows, r)
	}
	return rows
}

// ActedRows returns rows as the argument of statements about operators' changes.
func ActedRows(rows ...*actedRow) string {
	all := make([]database.ActedArg, len(rows))
	for k, r := range rows {
		all[k] = database.ActedArg{K: k, N: r.Number, R: r.revision}
	}
	return sqlform.JSON(all)
}

// turn is a change of a row's marker.
type turn struct {
	row    *actedRow
	marker sqlform.Marker
}

type turnArg struct {
	database.ActedArg
	Outcome     int64   `json:"outcome"`
	Version     int64   `json:"version"`
	Sum         *string `json:"sum"`
	SeenOutcome int64   `json:"seen_outcome"`
	SeenVersion int64   `json:"seen_version"`
	SeenSum     *string `json:"seen_sum"`
}

// turnMarkers changes the markers of rows. A marker stays unchanged if it belongs to another row, or if its content was
// applied.
func turnMarkers(ctx context.Context, db *database.DB, tx *sql.Tx, turns ...turn) error {
	var all []turnArg
	var numbers []int64
	for _, t := range turns {
		if r := t.row; r.Owns && r.Outcome != store.Applied {
			all = append(all, turnArg{database.ActedArg{K: len(all), N: r.Number, R: r.revision}, t.marker.Outcome, t.marker.Version, hexOf(t.marker.Sum),
				r.Marker.Outcome, r.Marker.Version, hexOf(r.Marker.Sum)})
			numbers = append(numbers, r.Number)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return changeAll(ctx, tx, numbers, fmt.Errorf("its marker was not written: %w", semel.ErrChanged), db.SQL.TurnMarkers, sqlform.JSON(all))
}

// hexOf encodes a fingerprint in hexadecimal form; nil becomes NULL.
func hexOf(sum []byte) *string {
	if sum == nil {
		return nil
	}
	text := hex.EncodeToString(sum)
	return &text
}

// changeAll runs a statement that must change one row of a table for each given inbox row. If the statement changes
// fewer rows, the error wraps the parameter mismatch and contains the numbers of the rows.
func changeAll(ctx context.Context, tx *sql.Tx, numbers []int64, mismatch error, statement string, args ...any) error {
	done, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	n, err := done.RowsAffected()
	switch {
	case err == nil && n == int64(len(numbers)):
		return nil
	case len(numbers) == 1:
		mismatch = fmt.Errorf("row %d: %w", numbers[0], mismatch)
	default:
		mismatch = fmt.Errorf("one of rows %d to %d: %w", slices.Min(numbers), slices.Max(numbers), mismatch)
	}
	return errors.Join(mismatch, err)
}

// setAll changes rows, and returns semel.ErrChanged if a row was changed after it was read.
func setAll(ctx context.Context, tx *sql.Tx, rows []*actedRow, statement string, args ...any) error {
	return changeAll(ctx, tx, numbersOf(rows), semel.ErrChanged, statement, append([]any{ActedRows(rows...)}, args...)...)
}

// setGrouped does the same as setAll, with an argument that differs by row. The function arg returns the argument of a
// row. The statement runs once for each value of the argument.
func setGrouped(ctx context.Context, tx *sql.Tx, rows []*actedRow, statement string, arg func(*actedRow) string) error {
	groups := map[string][]*actedRow{}
	for _, r := range rows {
		groups[arg(r)] = append(groups[arg(r)], r)
	}
	for _, value := range slices.Sorted(maps.Keys(groups)) {
		if err := setAll(ctx, tx, groups[value], statement, value); err != nil {
			return err
		}
	}
	return nil
}

// turnAll sets the markers of rows to the given outcome and to the fingerprints of the rows' content.
func turnAll(ctx context.Context, db *database.DB, tx *sql.Tx, rows []*actedRow, outcome store.Outcome) error {
	turns := make([]turn, len(rows))
	for k, r := range rows {
		turns[k] = turn{r, sqlform.Marker{Outcome: int64(outcome), Version: r.version, Sum: r.sum}}
	}
	return turnMarkers(ctx, db, tx, turns...)
}

func numbersOf(rows []*actedRow) []int64 {
	all := make([]int64, len(rows))
	for k, r := range rows {
		all[k] = r.Number
	}
	return all
}
