package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// actedRow is a row as an operator's act finds it.
type actedRow struct {
	number, revision, scope int64
	state                   store.RowState
	reason                  semel.Reason
	outcome                 store.Outcome // of its marker; parked if there is none
	version                 int64
	id, conflict, sum, line []byte
	// due: the time from which it may be claimed has come. unknown: the outcome of a call for it is unknown.
	// bodiless: its payload was removed.
	due, unknown, bodiless bool
	place                  int64 // in its line, 0 if it is in none
	stream                 []byte
	// marked is whether there is a marker, marker its content; others are the other rows of
	// the identity, and owns whether the marker belongs to this row. See Store.readTwins.
	marked bool
	marker sqlform.Marker
	others []sqlform.Twin
	owns   bool
	// unread says why no act may change the row: only a newer release knows what it or its marker says.
	unread error
	// at is the index of the row in the list of an act on several rows.
	at int
}

// look reads the row that an act is about, in the act's transaction.
func (s *Store) look(ctx context.Context, tx *sql.Tx, number, revision int64) (*actedRow, error) {
	found, err := s.lookAll(ctx, tx, []int64{number}, false)
	r := found[number]
	switch {
	case err != nil:
		return nil, err
	case r == nil || r.revision != revision:
		return nil, fmt.Errorf("row %d: %w", number, semel.ErrChanged)
	}
	return r, r.unread
}

// lookAll locks and reads rows with their markers, in an act's transaction. Those that others have locked are
// waited for, or left out with skip.
func (s *Store) lookAll(ctx context.Context, tx *sql.Tx, numbers []int64, skip bool) (map[int64]*actedRow, error) {
	all := make(map[int64]*actedRow, len(numbers))
	busy := ""
	if skip {
		busy = " skip locked"
	}
	err := eachRow(ctx, tx, strings.ReplaceAll(s.sql.ActedRows, "{busy}", busy), func(rows *sql.Rows) error {
		r := &actedRow{}
		found := sqlform.Acted{Inbox: s.sql.Inbox, Markers: s.sql.Markers, Outcome: int64(store.Parked)}
		var outcome, version sql.NullInt64
		err := rows.Scan(&r.number, &r.revision, &found.State, &r.scope, &r.id, &r.conflict, &r.version, &r.sum, &r.due,
			&r.reason, &r.unknown, &r.line, &r.place, &r.stream, &r.bodiless, &outcome, &version, &r.marker.Sum)
		if r.marked = outcome.Valid; r.marked {
			found.Outcome, r.marker.Version = outcome.Int64, version.Int64
		}
		found.Number = r.number
		r.state, r.unread = found.Understood()
		r.outcome = store.Outcome(found.Outcome)
		all[r.number] = r
		return err
	}, []any{actedNumbers(numbers...)})
	return all, err
}

// readTwins reads the other rows of the identities of rows, once the rows and their markers are locked, and
// finds out whether each marker belongs to its row (law 16).
func (s *Store) readTwins(ctx context.Context, tx *sql.Tx, of ...*actedRow) error {
	if len(of) == 0 {
		return nil
	}
	byNumber := make(map[int64]*actedRow, len(of))
	for _, r := range of {
		r.others, byNumber[r.number] = nil, r
	}
	err := eachRow(ctx, tx, s.sql.OtherRows, func(rows *sql.Rows) error {
		var number int64
		var t sqlform.Twin
		var state string
		err := rows.Scan(&number, &t.Number, &state, &t.Conflict, &t.Version, &t.Sum, &t.Stepped, &t.UnknownOutcome)
		t.State = store.RowState(state)
		byNumber[number].others = append(byNumber[number].others, t)
		return err
	}, []any{actedRows(of...)})
	for _, r := range of {
		r.marker.Outcome = int64(r.outcome)
		own := sqlform.Twin{Number: r.number, State: r.state, Conflict: len(r.conflict) > 0, Version: r.version, Sum: r.sum}
		r.owns = r.marked && r.marker.Of(own, r.others)
	}
	return err
}

// mayRun refuses work on a row beside the other rows of its identity; see Store.readTwins.
func (r *actedRow) mayRun(others []sqlform.Twin) error {
	said := store.Outcome(0)
	if r.marked {
		said = r.outcome
	}
	return admin.MayRun(r.number, said, r.owns, sqlform.StoredTwins(others))
}

// closed is the marker of a row that is closed without an effect. A marker that a conflict had is
// returned to the row of the first content.
func (r *actedRow) closed() turn {
	to := sqlform.Marker{Outcome: int64(store.Discarded), Version: r.version, Sum: r.sum}
	if len(r.conflict) > 0 {
		to = sqlform.Returned(to, r.others)
	}
	return turn{r, to}
}

// set changes a row if nobody has since it was seen.
func (s *Store) set(ctx context.Context, tx *sql.Tx, r *actedRow, statement string, args ...any) error {
	done, err := tx.ExecContext(ctx, statement, append(args, r.number, r.revision)...)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		return errors.Join(fmt.Errorf("row %d: %w", r.number, semel.ErrChanged), err)
	}
	return nil
}

func (s *Store) record(ctx context.Context, tx *sql.Tx, a store.Act, number int64, result string) error {
	return s.recordOn(ctx, tx, a, result, number)
}

// answer passes on what an act's caller asks for and wraps the rest.
func (s *Store) answer(doing string, err error) error {
	if err == nil || errors.Is(err, semel.ErrChanged) || errors.Is(err, semel.ErrState) || errors.Is(err, semel.ErrConflict) {
		return err
	}
	return s.blameless(doing, err)
}

// Discard implements store.Inbox.
func (s *Store) Discard(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	judge := func(r *actedRow) error { return admin.MayAct(store.RowDiscarded, r.stored(), r.due) }
	of := acting{verb: "discard", act: a, rows: rows, judge: judge, change: discard}
	return of.carry(ctx, s)
}

// discard closes rows and their markers, and lets their lines go on.
func discard(ctx context.Context, s *Store, tx *sql.Tx, rows []*actedRow) error {
	if err := s.setAll(ctx, tx, rows, s.sql.DiscardRows); err != nil {
		return err
	}
	turns := make([]turn, len(rows))
	for k, r := range rows {
		turns[k] = r.closed()
	}
	if err := s.turnMarkers(ctx, tx, turns...); err != nil {
		return err
	}
	return s.leaveLines(ctx, tx, firstOfLines(rows))
}

// firstOfLines returns the number of one row of each line that the rows are in.
func firstOfLines(rows []*actedRow) (numbers []int64) {
	had := map[string]bool{}
	for _, r := range rows {
		if r.line != nil && !had[string(r.line)] {
			had[string(r.line)] = true
			numbers = append(numbers, r.number)
		}
	}
	return numbers
}

// Record implements admin.Recorder.
func (s *Store) Record(ctx context.Context, a store.Act) error {
	return s.answer("record", s.write(ctx, func(tx *sql.Tx) error { return s.record(ctx, tx, a, a.Row, "done") }))
}

// Acts implements store.Inbox. A limit of 0 means 1,000.
func (s *Store) Acts(ctx context.Context, number int64, limit int) ([]store.Act, error) {
	if limit <= 0 {
		limit = mostRows
	}
	return s.acts(ctx, s.sql.Acts, number, limit)
}

func (s *Store) acts(ctx context.Context, statement string, of any, limit int) ([]store.Act, error) {
	rows, err := s.db.QueryContext(ctx, statement, of, limit)
	if err != nil {
		return nil, s.blameless("acts", err)
	}
	defer rows.Close()
	var acts []store.Act
	for rows.Next() {
		var a store.Act
		var at int64
		if err := rows.Scan(&a.Row, &a.Verb, &a.Who, &a.Why, &a.Result, &at); err != nil {
			return nil, s.blameless("acts", err)
		}
		a.At = time.UnixMilli(at)
		acts = append(acts, a)
	}
	if err := rows.Err(); err != nil {
		return nil, s.blameless("acts", err)
	}
	return acts, nil
}
