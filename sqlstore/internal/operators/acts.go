// Package operators carries out operators' changes to rows of the inbox. Each change of up to 500
// rows is one transaction, which also writes the audit records of the change.
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

// Store implements the operators' changes of store.Inbox and of package admin.
type Store struct{ db *database.DB }

// New returns the Store of a database.
func New(db *database.DB) *Store { return &Store{db} }

// mostActed is the maximum number of rows that a command changes in one transaction.
const mostActed = 500

// acting is an operator's change to any number of rows. Each statement of a transaction is for all of its rows.
type acting struct {
	verb string // for errors
	act  store.Act
	rows []store.RowRevision
	// result is written to the audit record of each row; the default is "done".
	result string
	// errs has an error, or nil, for each row.
	errs []error
	// judge returns why the command must not change a row.
	judge func(*actedRow) error
	// change writes the rows that judge allows.
	change func(ctx context.Context, s *database.DB, tx *sql.Tx, rows []*actedRow) error
}

// none returns this error for each row.
func (a *acting) none(err error) []error {
	errs := make([]error, len(a.rows))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// carry carries out an operator's change and returns an error, or nil, for each row.
func (a *acting) carry(ctx context.Context, s *database.DB) []error {
	a.errs = make([]error, len(a.rows))
	stores, err := daily.OfRows(ctx, s, a.rows)
	if err != nil {
		return a.none(err)
	}
	for own, places := range stores {
		for some := range slices.Chunk(places, mostActed) {
			a.some(ctx, own, some)
		}
	}
	return a.errs
}

// fail sets err for the rows at these places that judge has not rejected.
func (a *acting) fail(places []int, err error) {
	for _, i := range places {
		if a.errs[i] == nil {
			a.errs[i] = err
		}
	}
}

// some changes the rows at these places in one transaction. If the transaction fails because of one
// of them, some acts on each half, so that one row cannot keep the others from being changed.
func (a *acting) some(ctx context.Context, s *database.DB, places []int) {
	t := &actsTogether{acting: a, store: s, places: places}
	err := s.Write(ctx, func(tx *sql.Tx) error { return t.run(ctx, tx) })
	switch {
	case err == nil:
	case len(places) == 1 || !t.mayBeOfOne(ctx, err):
		a.fail(places, s.Answer(a.verb, err))
		return
	default:
		a.some(ctx, s, places[:len(places)/2])
		a.some(ctx, s, places[len(places)/2:])
		return
	}
	if len(t.twins) > 0 {
		a.some(ctx, s, t.twins)
	}
	for _, i := range t.busy {
		a.some(ctx, s, []int{i})
	}
}

// actsTogether is one transaction of an acting.
type actsTogether struct {
	*acting
	store  *database.DB
	places []int
	// began reports that the transaction had begun, so that an error may be of one row.
	began bool
	// twins are places of rows whose identity an earlier row of the transaction has. They are judged after
	// its commit. busy are places of rows that are locked or do not exist. Each is acted on alone, so that
	// a transaction that waits for a lock holds no other.
	twins, busy []int
}

// mayBeOfOne reports whether an error may be of one of the rows, so that the others can be changed
// without it. After a COMMIT with an unknown outcome nothing is tried again.
func (t *actsTogether) mayBeOfOne(ctx context.Context, err error) bool {
	var unknown *database.UnknownError
	if !t.began || ctx.Err() != nil || errors.As(err, &unknown) {
		return false
	}
	return t.store.Classify(err) != store.ClassDown || t.store.Dialect.Coded(err)
}

// run judges the rows, changes those that the command may change, and writes the audit records.
func (t *actsTogether) run(ctx context.Context, tx *sql.Tx) error {
	t.began, t.twins, t.busy = true, nil, nil
	found, err := lookAll(ctx, t.store, tx, t.numbers(), len(t.places) > 1)
	if err != nil {
		return err
	}
	rows := t.chosen(found)
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

func (t *actsTogether) numbers() []int64 {
	all := make([]int64, len(t.places))
	for k, i := range t.places {
		all[k] = t.rows[i].Number
	}
	return all
}

// chosen returns the rows that are judged in this transaction, and says why the others are not.
func (t *actsTogether) chosen(found map[int64]*actedRow) (rows []*actedRow) {
	type identity struct {
		scope int64
		id    string
	}
	had := map[identity]bool{}
	for _, i := range t.places {
		r := found[t.rows[i].Number]
		t.errs[i] = nil
		switch {
		case r == nil && len(t.places) > 1:
			t.busy = append(t.busy, i)
			continue
		case r == nil || r.revision != t.rows[i].Revision:
			t.errs[i] = fmt.Errorf("row %d: %w", t.rows[i].Number, semel.ErrChanged)
			continue
		case had[identity{r.scope, string(r.id)}]:
			t.twins = append(t.twins, i)
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

// ActedRows returns the argument of statements about acts for these rows.
func ActedRows(rows ...*actedRow) string {
	all := make([]database.ActedArg, len(rows))
	for k, r := range rows {
		all[k] = database.ActedArg{K: k, N: r.Number, R: r.revision}
	}
	return sqlform.JSON(all)
}

// turn is the new content of a row's marker.
type turn struct {
	row *actedRow
	to  sqlform.Marker
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

// turnMarkers changes the markers of rows. turnMarkers skips a marker that belongs to another
// row, or whose content is applied.
func turnMarkers(ctx context.Context, db *database.DB, tx *sql.Tx, turns ...turn) error {
	var all []turnArg
	var numbers []int64
	for _, t := range turns {
		if r := t.row; r.Owns && r.Outcome != store.Applied {
			all = append(all, turnArg{database.ActedArg{K: len(all), N: r.Number, R: r.revision}, t.to.Outcome, t.to.Version, hexOf(t.to.Sum),
				r.Marker.Outcome, r.Marker.Version, hexOf(r.Marker.Sum)})
			numbers = append(numbers, r.Number)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return changeAll(ctx, tx, numbers, fmt.Errorf("its marker was not written: %w", semel.ErrChanged), db.SQL.TurnMarkers, sqlform.JSON(all))
}

// hexOf encodes a sum for turn markers; nil means NULL.
func hexOf(sum []byte) *string {
	if sum == nil {
		return nil
	}
	text := hex.EncodeToString(sum)
	return &text
}

// changeAll runs a statement that changes one row of a table for each of these rows of the inbox. If it
// changes fewer, the error is otherwise, with the numbers.
func changeAll(ctx context.Context, tx *sql.Tx, numbers []int64, otherwise error, statement string, args ...any) error {
	done, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	n, err := done.RowsAffected()
	switch {
	case err == nil && n == int64(len(numbers)):
		return nil
	case len(numbers) == 1:
		otherwise = fmt.Errorf("row %d: %w", numbers[0], otherwise)
	default:
		otherwise = fmt.Errorf("one of rows %d to %d: %w", slices.Min(numbers), slices.Max(numbers), otherwise)
	}
	return errors.Join(otherwise, err)
}

// setAll changes rows unless they were changed since they were read.
func setAll(ctx context.Context, tx *sql.Tx, rows []*actedRow, statement string, args ...any) error {
	return changeAll(ctx, tx, numbersOf(rows), semel.ErrChanged, statement, append([]any{ActedRows(rows...)}, args...)...)
}

// setGrouped is setAll with an argument that arg returns for each row. setGrouped runs the statement once for
// each value.
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

// turnAll changes the markers of rows to this outcome, with the rows' contents.
func turnAll(ctx context.Context, db *database.DB, tx *sql.Tx, rows []*actedRow, to store.Outcome) error {
	turns := make([]turn, len(rows))
	for k, r := range rows {
		turns[k] = turn{r, sqlform.Marker{Outcome: int64(to), Version: r.version, Sum: r.sum}}
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
