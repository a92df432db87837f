package operators

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// actedRow is an inbox row that an operator's command has read.
type actedRow struct {
	Number, revision, scope int64
	state                   store.RowState
	reason                  semel.Reason
	Outcome                 store.Outcome // outcome of the row's marker; parked if there is no marker
	version                 int64
	id, conflict, sum, line []byte
	// The field due is true if the row can be claimed. The field unknown is true if a call for the row has an unknown
	// outcome. The field bodiless is true if the body was removed.
	due, unknown, bodiless bool
	lanePosition           int64 // position in the row's lane, 0 if the row is in no lane
	stream                 []byte
	// Marked is true if the identity has a marker, and Marker is the content of this marker. Others contains the other
	// rows of the identity. Owns is true if the marker belongs to this row; ReadTwins sets Owns.
	Marked bool
	Marker sqlform.Marker
	Others []sqlform.Twin
	Owns   bool
	// An error if a newer release wrote the row or its marker, so that no command may change the row; nil in all other
	// cases.
	unread error
	// The index of the row in the list of rows of the command.
	at int
}

// Look reads a row that an operator changes, in the transaction of the change.
func Look(ctx context.Context, db *database.DB, tx *sql.Tx, number, revision int64) (*actedRow, error) {
	found, err := lookAll(ctx, db, tx, []int64{number}, false)
	r := found[number]
	switch {
	case err != nil:
		return nil, err
	case r == nil || r.revision != revision:
		return nil, fmt.Errorf("row %d: %w", number, semel.ErrChanged)
	}
	return r, r.unread
}

// lookAll locks and reads rows with their markers, in the transaction of a change. If another transaction has
// locked a row, lookAll waits, or leaves the row out if skip is true.
func lookAll(ctx context.Context, db *database.DB, tx *sql.Tx, numbers []int64, skip bool) (map[int64]*actedRow, error) {
	all := make(map[int64]*actedRow, len(numbers))
	busy := ""
	if skip {
		busy = " skip locked"
	}
	err := database.EachRow(ctx, tx, strings.ReplaceAll(db.SQL.ActedRows, "{busy}", busy), func(rows *sql.Rows) error {
		r := &actedRow{}
		found := sqlform.Acted{Inbox: db.SQL.Inbox, Markers: db.SQL.Markers, Outcome: int64(store.Parked)}
		var outcome, version sql.NullInt64
		err := rows.Scan(&r.Number, &r.revision, &found.State, &r.scope, &r.id, &r.conflict, &r.version, &r.sum, &r.due,
			&r.reason, &r.unknown, &r.line, &r.lanePosition, &r.stream, &r.bodiless, &outcome, &version, &r.Marker.Sum)
		if r.Marked = outcome.Valid; r.Marked {
			found.Outcome, r.Marker.Version = outcome.Int64, version.Int64
		}
		found.Number = r.Number
		r.state, r.unread = found.Understood()
		r.Outcome = store.Outcome(found.Outcome)
		all[r.Number] = r
		return err
	}, database.ActedNumbers(numbers...))
	return all, err
}

// ReadTwins reads the other rows of the identities. For each row, ReadTwins sets whether the marker belongs to the row
// (law 16). The rows and their markers must be locked.
func ReadTwins(ctx context.Context, db *database.DB, tx *sql.Tx, of ...*actedRow) error {
	if len(of) == 0 {
		return nil
	}
	byNumber := make(map[int64]*actedRow, len(of))
	for _, r := range of {
		r.Others, byNumber[r.Number] = nil, r
	}
	err := database.EachRow(ctx, tx, db.SQL.OtherRows, func(rows *sql.Rows) error {
		var number int64
		var t sqlform.Twin
		var state string
		err := rows.Scan(&number, &t.Number, &state, &t.Conflict, &t.Version, &t.Sum, &t.Stepped, &t.UnknownOutcome)
		t.State = store.RowState(state)
		byNumber[number].Others = append(byNumber[number].Others, t)
		return err
	}, ActedRows(of...))
	for _, r := range of {
		r.Marker.Outcome = int64(r.Outcome)
		own := sqlform.Twin{Number: r.Number, State: r.state, Conflict: len(r.conflict) > 0, Version: r.version, Sum: r.sum}
		r.Owns = r.Marked && r.Marker.Of(own, r.Others)
	}
	return err
}

// mayRun returns an error if the row must not be processed because of the other rows of its identity; see
// ReadTwins.
func (r *actedRow) mayRun(others []sqlform.Twin) error {
	said := store.Outcome(0)
	if r.Marked {
		said = r.Outcome
	}
	return admin.MayRun(r.Number, said, r.Owns, sqlform.StoredTwins(others))
}

// closedTurn returns the change of the marker when a row is closed without an effect. If the row is a conflict and the
// marker belongs to it, the marker goes back to the row with the first content.
func (r *actedRow) closedTurn() turn {
	to := sqlform.Marker{Outcome: int64(store.Discarded), Version: r.version, Sum: r.sum}
	if len(r.conflict) > 0 {
		to = sqlform.Returned(to, r.Others)
	}
	return turn{r, to}
}

// Set changes a row, and returns semel.ErrChanged if the row was changed after it was read.
func Set(ctx context.Context, tx *sql.Tx, r *actedRow, statement string, args ...any) error {
	return database.ExecOne(ctx, tx, fmt.Errorf("row %d: %w", r.Number, semel.ErrChanged), statement, append(args, r.Number, r.revision)...)
}

// firstOfLines returns one row number for each lane that contains one of the given rows.
func firstOfLines(rows []*actedRow) (numbers []int64) {
	had := map[string]bool{}
	for _, r := range rows {
		if r.line != nil && !had[string(r.line)] {
			had[string(r.line)] = true
			numbers = append(numbers, r.Number)
		}
	}
	return numbers
}

// Record implements admin.Recorder.
func (s *Store) Record(ctx context.Context, a store.Act) error {
	return s.db.Answer("record", s.db.Write(ctx, func(tx *sql.Tx) error { return s.db.Record(ctx, tx, a, a.Row, "done") }))
}

// Acts implements store.Inbox. A limit of 0 means 1,000.
func (s *Store) Acts(ctx context.Context, number int64, limit int) ([]store.Act, error) {
	if limit <= 0 {
		limit = database.MostRows
	}
	return Acts(ctx, s.db, s.db.SQL.Acts, number, limit)
}

// Acts returns the audit records that a statement finds, for example those of a row.
func Acts(ctx context.Context, s *database.DB, statement string, of any, limit int) ([]store.Act, error) {
	acts, err := database.List(ctx, s.Pool, statement, func(rows *sql.Rows) (store.Act, error) {
		var a store.Act
		var at int64
		err := rows.Scan(&a.Row, &a.Verb, &a.Who, &a.Why, &a.Result, &at)
		a.At = time.UnixMilli(at)
		return a, err
	}, of, limit)
	return acts, s.Answer("acts", err)
}
