// Package marking writes and reads markers. The package also assigns a number to each scope (consumer, source and
// generation) of identities.
package marking

import (
	"context"
	"database/sql"

	"github.com/semel-go/semel/internal/formers"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// Store implements admin.Interner, admin.MarkerReader, admin.Previewer, and the methods of store.CallerTx that
// need no messages.
type Store struct{ db *database.DB }

// New returns the Store of a database.
func New(db *database.DB) *Store { return &Store{db} }

// Trim removes the markers that the transaction tx wrote for the messages with the given indexes.
func Trim(ctx context.Context, db *database.DB, tx *sql.Tx, marks []sqlform.Mark, unwanted []int) error {
	if len(unwanted) == 0 {
		return nil
	}
	for chunk := range db.Dialect.Chunks(unwanted) {
		flat := make([]any, 0, 2*len(chunk))
		for _, i := range chunk {
			flat = append(flat, marks[i].Scope, marks[i].Key)
		}
		text, args := db.Bulk(db.SQL.Trim, 2, flat)
		if _, err := tx.ExecContext(ctx, text, args...); err != nil {
			return err
		}
	}
	return nil
}

// MarkIn implements store.CallerTx. In SQLite, MarkIn may return an error of class store.ClassContended in a
// transaction that has read but not written before. So begin a transaction for MarkIn with a write.
func (s *Store) MarkIn(ctx context.Context, tx *sql.Tx, marks []store.Mark) ([]store.Verdict, error) {
	if err := s.db.File.Check(); err != nil {
		return nil, err
	}
	l := Lists{s.db, tx, false}
	former := formers.Of(marks)
	all := sqlform.Marks(former.Marks(marks))
	verdicts, err := l.Mark(ctx, all, former, s.db.SQL.Mark)
	if err != nil {
		return nil, s.db.Blameless("mark", err)
	}
	answers := former.Judge(verdicts)
	if err = Trim(ctx, s.db, tx, all, former.Back()); err == nil {
		err = l.JudgeAges(ctx, marks, answers)
	}
	if err != nil {
		return nil, s.db.Blameless("mark", err)
	}
	return answers, nil
}

// Mark writes the markers sorted by identity, so that two batches cannot deadlock. If several marks are equal, Mark
// writes a marker for the first of them. A second statement reads the markers that existed already, because a statement
// does not see a marker that was committed after the statement began.
//
// The parameter former has the previous identities of the marks. The parameter more contains further arguments of the
// first statement.
func (l Lists) Mark(ctx context.Context, marks []sqlform.Mark, former *formers.Batch, first string, more ...any) ([]store.Verdict, error) {
	verdicts := make([]store.Verdict, len(marks))
	var seen []int
	for chunk := range l.Chunks(sqlform.Sorted(marks)) {
		if err := l.Insert(ctx, first, marks, chunk, verdicts, more...); err != nil {
			return nil, err
		}
		for _, i := range chunk {
			if verdicts[i].Kind != store.Fresh {
				seen = append(seen, i)
			}
		}
	}
	if len(seen) == 0 {
		return verdicts, nil
	}
	for chunk := range l.Chunks(append(former.Rows(verdicts), seen...)) {
		if err := l.judge(ctx, marks, former, chunk, verdicts); err != nil {
			return nil, err
		}
	}
	if l.DB.Days != nil {
		if err := l.setAside(ctx, marks, seen, verdicts); err != nil {
			return nil, err
		}
	}
	for _, i := range seen {
		if verdicts[i].Kind == 0 {
			return nil, &database.Error{Doing: "mark", Class: store.ClassContended, Err: sqlform.ErrMissing}
		}
	}
	return verdicts, nil
}

func markColumns(c sqlform.Crypt, marks []sqlform.Mark, chunk []int) []any {
	flat := make([]any, 0, 6*len(chunk))
	for _, i := range chunk {
		m := &marks[i]
		version, sum := c.MarkPrint(m)
		flat = append(flat, m.Scope, m.Key, int64(m.As), version, sum, m.Long)
	}
	return flat
}

// Insert writes the markers of those messages whose indexes are in chunk. Insert sets the verdict of each message whose
// marker was written to fresh (new).
func (l Lists) Insert(ctx context.Context, statement string, marks []sqlform.Mark, chunk []int, verdicts []store.Verdict, more ...any) error {
	rows, err := l.query(ctx, statement, 6, markColumns(l.DB.Crypt, marks, chunk), more...)
	if err != nil {
		return err
	}
	written, err := readWritten(rows, len(chunk))
	if err != nil {
		return err
	}
	for _, i := range chunk {
		key := markerKey{marks[i].Scope, string(marks[i].Key)}
		if written[key] {
			delete(written, key)
			verdicts[i].Kind = store.Fresh
		}
	}
	return nil
}

type markerKey struct {
	scope int64
	id    string
}

func readWritten(rows *sql.Rows, most int) (map[markerKey]bool, error) {
	defer rows.Close()
	written := make(map[markerKey]bool, most)
	for rows.Next() {
		var n int64
		var id sql.RawBytes
		if err := rows.Scan(&n, &id); err != nil {
			return nil, err
		}
		written[markerKey{n, string(id)}] = true
	}
	return written, rows.Err()
}

// judge sets the verdicts of the messages whose marker existed already.
func (l Lists) judge(ctx context.Context, marks []sqlform.Mark, former *formers.Batch, chunk []int, verdicts []store.Verdict) error {
	rows, err := l.query(ctx, l.DB.SQL.Judge, 4, judgeArgs(l.DB.Crypt, marks, chunk))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		i, there, err := scanJudged(rows)
		if err != nil {
			return err
		}
		if verdicts[i].Kind == store.Fresh { // the statement Judge was needed only for the row of this mark
			former.Knows(i, there.Known)
			continue
		}
		there.Known = there.Known || verdicts[i].Known
		if verdicts[i], err = verdict(l.DB, &marks[i], there); err != nil {
			return err
		}
	}
	return rows.Err()
}

// judgeArgs returns the arguments of the statement Judge for some marks. If the key of a conflict may have
// several formats, the mark is repeated for each format.
func judgeArgs(c sqlform.Crypt, marks []sqlform.Mark, chunk []int) []any {
	args := make([]any, 0, 4*len(chunk))
	var room [4][]byte
	for _, i := range chunk {
		m := &marks[i]
		for _, conflict := range c.AppendConflicts(room[:0], m) {
			args = append(args, int64(i), m.Scope, m.Key, conflict)
		}
	}
	return args
}

// scanJudged reads a row of the statement Judge: the index of a mark, and its marker. The marker is valid
// until the next row is read.
func scanJudged(rows *sql.Rows) (i int, there sqlform.Marker, err error) {
	var sum sql.RawBytes
	err = rows.Scan(&i, &there.Outcome, &there.Version, &sum, &there.Known)
	there.Sum = sum
	return i, there, err
}

// verdict returns the store's verdict (duplicate, conflict, …) for a message whose marker exists.
func verdict(db *database.DB, m *sqlform.Mark, there sqlform.Marker) (store.Verdict, error) {
	if db.Days == nil {
		return there.Verdict(db.Crypt, m), nil
	}
	return Judged(db.Crypt, m, there)
}
