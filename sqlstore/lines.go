package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// lookAtLines finds what has to wait for others of its line.
func (b *batch) lookAtLines(ctx context.Context, marks []store.Mark, verdicts []store.Verdict) error {
	busy, err := b.store.busy(ctx, b.tx, marks, lines.Asked(marks))
	if err == nil {
		lines.Judge(marks, busy, verdicts)
	}
	return err
}

// busy are those of the marks that ask of whose lines something waits.
func (s *Store) busy(ctx context.Context, tx *sql.Tx, marks []store.Mark, asked []int) (busy []int, err error) {
	if len(asked) == 0 {
		return nil, nil
	}
	if s.postgres != nil {
		names := make([]any, 0, len(asked))
		for _, i := range asked {
			names = append(names, marks[i].Line)
		}
		places, err := indexes(tx.QueryContext(ctx, s.postgres.BusyLines, arrays(1, names)...))
		for _, k := range places {
			busy = append(busy, asked[k-1])
		}
		return busy, err
	}
	for _, i := range asked {
		var one int
		switch err := tx.QueryRowContext(ctx, s.sqlite.BusyLine, marks[i].Line).Scan(&one); {
		case err == nil:
			busy = append(busy, i)
		case !errors.Is(err, sql.ErrNoRows):
			return nil, err
		}
	}
	return busy, nil
}

// enterLines has the rows of a batch take their places. It reports whether one that was to
// be blocked is the first of its line.
func (s *Store) enterLines(ctx context.Context, tx *sql.Tx, marks []sqlform.Mark, all []lines.Entry) (came bool, err error) {
	if len(all) == 0 {
		return false, nil
	}
	if s.postgres != nil {
		return s.postgresEnter(ctx, tx, marks, all)
	}
	for _, n := range all {
		if _, err := tx.ExecContext(ctx, s.sqlite.KnowLine, []byte(n.Line)); err != nil {
			return false, err
		}
		var state store.RowState
		if err := tx.QueryRowContext(ctx, s.sqlite.EnterLine, marks[n.Mark].Scope, []byte(n.Line), marks[n.Mark].Key).Scan(&state); err != nil {
			return false, err
		}
		came = came || state == store.StateReceived
	}
	return came, nil
}

func (s *Store) postgresEnter(ctx context.Context, tx *sql.Tx, marks []sqlform.Mark, all []lines.Entry) (came bool, err error) {
	var places, entries []any
	for _, n := range lines.Counted(all) {
		places = append(places, []byte(n.Line), n.Rows)
	}
	for _, n := range all {
		entries = append(entries, marks[n.Mark].Scope, marks[n.Mark].Key, []byte(n.Line), n.Behind)
	}
	if _, err := tx.ExecContext(ctx, s.postgres.KnowLines, arrays(2, places)...); err != nil {
		return false, err
	}
	n := 0
	err = tx.QueryRowContext(ctx, s.postgres.EnterLines, arrays(4, entries)...).Scan(&n)
	return n > 0, err
}

// changeLines has rows enter their lines, and lets those go on that others have left. It
// reports whether a row is freed by that, or first where it was to be blocked.
func (s *Store) changeLines(ctx context.Context, tx *sql.Tx, marks []sqlform.Mark, entering []lines.Entry, left []int64) (freed bool, err error) {
	if len(left) > 0 && s.postgres != nil {
		var names []any
		for _, n := range lines.Counted(entering) {
			names = append(names, []byte(n.Line))
		}
		if _, err := tx.ExecContext(ctx, s.postgres.LeaveLines, arrays(1, anys(left))[0], arrays(1, names)[0]); err != nil {
			return false, err
		}
	}
	came, err := s.enterLines(ctx, tx, marks, entering)
	if err != nil {
		return false, err
	}
	next, err := s.advanceLines(ctx, tx, left)
	return came || next, err
}

// leaveLines lets the lines of rows go on that have left them.
func (s *Store) leaveLines(ctx context.Context, tx *sql.Tx, left []int64) error {
	_, err := s.changeLines(ctx, tx, nil, nil, left)
	return err
}

// advanceLines frees the first rows of the lines that others have left.
func (s *Store) advanceLines(ctx context.Context, tx *sql.Tx, left []int64) (freed bool, err error) {
	if len(left) == 0 {
		return false, nil
	}
	if s.postgres != nil {
		n := 0
		err := tx.QueryRowContext(ctx, s.postgres.AdvanceLines, arrays(1, anys(left))...).Scan(&n)
		return n > 0, err
	}
	numbers := sqlform.JSON(left)
	done, err := tx.ExecContext(ctx, s.sqlite.AdvanceLines, numbers)
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	if err != nil {
		return false, err
	}
	_, err = tx.ExecContext(ctx, s.sqlite.ForgetLines, numbers)
	return n > 0, err
}

// First implements admin.Lines.
func (s *Store) First(ctx context.Context, number int64) (first int64, err error) {
	err = s.db.QueryRowContext(ctx, s.sql.FirstInLine, number).Scan(&first)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return first, s.answer("first in line", err)
}

// Sweep implements admin.Lines.
func (s *Store) Sweep(ctx context.Context) (freed int64, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		if s.postgres != nil {
			return tx.QueryRowContext(ctx, s.sql.SweepLines).Scan(&freed)
		}
		done, err := tx.ExecContext(ctx, s.sql.SweepLines)
		if err != nil {
			return err
		}
		freed, err = done.RowsAffected()
		return err
	})
	return freed, s.answer("sweep", err)
}

// dissolvedAtOnce is how many rows leave their lines in one transaction.
const dissolvedAtOnce = 1000

// Dissolve implements admin.Lines.
func (s *Store) Dissolve(ctx context.Context, consumer string) (rows int64, err error) {
	first, end := append([]byte(consumer), 0), append([]byte(consumer), 1)
	for more := true; more && err == nil; {
		err = s.write(ctx, func(tx *sql.Tx) error {
			done, err := tx.ExecContext(ctx, s.sql.DissolveRows, first, end, dissolvedAtOnce)
			if err != nil {
				return err
			}
			n, err := done.RowsAffected()
			rows, more = rows+n, n == dissolvedAtOnce
			return err
		})
	}
	if err == nil && rows > 0 {
		err = s.write(ctx, func(tx *sql.Tx) error { return s.dropLines(ctx, tx, first, end) })
	}
	return rows, s.answer("dissolve", err)
}

// dropLines removes the lines between two names in which nothing stands.
func (s *Store) dropLines(ctx context.Context, tx *sql.Tx, first, end []byte) error {
	if s.postgres != nil {
		if _, err := tx.ExecContext(ctx, s.postgres.LockLines, first, end); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, s.sql.DropLines, first, end)
	return err
}

// Skip implements admin.Lines.
func (s *Store) Skip(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	judge := func(r *actedRow) error { return admin.MaySkip(r.stored()) }
	change := func(ctx context.Context, s *Store, tx *sql.Tx, rows []*actedRow) error {
		if err := s.setAll(ctx, tx, rows, s.sql.SkipRows); err != nil {
			return err
		}
		return s.leaveLines(ctx, tx, firstOfLines(rows))
	}
	of := acting{verb: "skip", act: a, rows: rows, judge: judge, change: change}
	for some := range slices.Chunk(rows, mostActed) {
		// A row that was dated ahead waits for its own wait, before the act sees it.
		if _, _, err := claimsOf(s).cutAhead(ctx, s, sqlform.JSON(numbersSeen(some))); err != nil {
			return of.none(s.answer("skip", err))
		}
	}
	return of.carry(ctx, s)
}
