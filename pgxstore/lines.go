package pgxstore

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// lookAtLines is the statement that finds what has to wait for others of its line, with
// those that begin the batch.
func (b *batch) lookAtLines(marks []store.Mark) []*request {
	asked := lines.Asked(marks)
	if len(asked) == 0 {
		return nil
	}
	names := make([][]byte, 0, len(asked))
	for _, i := range asked {
		names = append(names, marks[i].Line)
	}
	return []*request{{sql: b.store.sql.BusyLines, args: []any{names}, read: func(rows pgx.Rows) error {
		for rows.Next() {
			var k int
			if err := rows.Scan(&k); err != nil {
				return err
			}
			b.busy = append(b.busy, asked[k-1])
		}
		return rows.Err()
	}}}
}

// entering are the statements that have rows take their places in their lines.
func entering(p *sqlform.Postgres, marks []sqlform.Mark, all []lines.Entry) (texts []string, args [][]any) {
	if len(all) == 0 {
		return nil, nil
	}
	var rows, of, behind []int64
	var names, ids, lined [][]byte
	for _, n := range lines.Counted(all) {
		names, rows = append(names, []byte(n.Line)), append(rows, n.Rows)
	}
	for _, n := range all {
		of, ids = append(of, marks[n.Mark].Scope), append(ids, marks[n.Mark].Key)
		lined, behind = append(lined, []byte(n.Line)), append(behind, n.Behind)
	}
	return []string{p.KnowLines, p.EnterLines}, [][]any{{names, rows}, {of, ids, lined, behind}}
}

// changeLines are the statements that have the rows of a batch take their places, and let
// the lines go on that others have left.
func (b *batch) changeLines(all []lines.Entry, left []int64) (requests []*request) {
	texts, args := entering(b.store.sql, b.marks, all)
	if len(left) > 0 {
		names := [][]byte{}
		for _, n := range lines.Counted(all) {
			names = append(names, []byte(n.Line))
		}
		requests = append(requests, &request{sql: b.store.sql.LeaveLines, args: []any{left, names}})
	}
	for i := range texts {
		q := &request{sql: texts[i], args: args[i]}
		if i == 1 {
			q.read = b.countFreed
		}
		requests = append(requests, q)
	}
	if len(left) > 0 {
		requests = append(requests, &request{sql: b.store.sql.AdvanceLines, args: []any{left}, read: b.countFreed})
	}
	return requests
}

// countFreed counts rows whose turn has come with the commit.
func (b *batch) countFreed(rows pgx.Rows) error {
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return err
		}
		b.freed += n
	}
	return rows.Err()
}

// First implements admin.Lines: the number of the row that keeps another back.
func (t *tables) First(ctx context.Context, number int64) (int64, error) {
	return t.inner.First(ctx, number)
}

// Sweep implements admin.Lines: it frees what waits in a line for nothing.
func (t *tables) Sweep(ctx context.Context) (int64, error) { return t.inner.Sweep(ctx) }

// Dissolve implements admin.Lines: it takes a consumer's rows out of their lines.
func (t *tables) Dissolve(ctx context.Context, consumer string) (int64, error) {
	return t.inner.Dissolve(ctx, consumer)
}

// Skip implements admin.Lines: it removes rows from their lines.
func (t *tables) Skip(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return t.inner.Skip(ctx, a, rows...)
}
