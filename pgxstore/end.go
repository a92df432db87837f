package pgxstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/sqlstate"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// endStatement is a statement at the end of a batch, with the index of the message whose attempt counts as failed if
// the statement fails.
type endStatement struct {
	*request
	mark int
}

// convertError converts an error of the statement. If the server rejects a statement about Semel's own tables, for
// example because of a missing privilege or a trigger, the error counts as a fault of the store, so that an operator
// can fix the cause and no message is parked.
func (c endStatement) convertError(s *Store, err error) error {
	switch {
	case c.checkedTable != "" && code(err) == sqlstate.Unmet:
		return s.wrapStoreError("the end of the batch", sqlform.WrittenIn(c.checkedTable, 0, 1))
	case c.mark == store.NoCulprit && c.ownTables && s.Classify(err) == store.ClassPermanent:
		return s.wrapStoreError("the end of the batch", err)
	case c.oneRow && c.unmet != nil && code(err) == sqlstate.Unmet:
		return fmt.Errorf("%w: %w", c.unmet, err)
	case c.oneRow && code(err) == sqlstate.Unmet:
		return fmt.Errorf("%w: %w", semel.PreconditionFailed("the statement "+strconv.Quote(c.text)), err)
	case c.mark == store.NoCulprit && code(err) == sqlstate.QueryCanceled:
		return &storeError{"the end of the batch", store.ClassContended, err}
	case c.ownTables && sqlstore.Remedy(err, false) == "": // refused adds the other remedies
		return addRemedy(err, true)
	}
	return err
}

// endStatements returns the statements that are sent with COMMIT. The statements at the end remove markers, write
// rows, end claims, and remove the guard. After an error, culprit is the index of the message that caused the error.
func (b *batch) endStatements(e store.Ending) (statements []endStatement, culprit int, err error) {
	e, moved := b.streams.End(b.former.End(e))
	begun := b.streams.Begun(e.Trim)
	if b.resultError != nil {
		return nil, store.NoCulprit, b.resultError
	}
	// The time limit of handlers does not apply to these statements.
	if len(e.Trim)+len(e.Rows)+len(e.Claims)+len(moved)+len(begun)+len(b.results) > 0 {
		statements = append(statements, endStatement{&request{sql: b.store.sql.Unlimited}, store.NoCulprit})
	}
	if trim := b.trim(e.Trim); trim != nil {
		statements = append(statements, b.ownStatement(trim))
	}
	for i := range e.Rows {
		r := &e.Rows[i]
		requests, err := b.row(r)
		if err != nil {
			return nil, r.Mark, err
		}
		for _, q := range requests {
			q.ownTables = !b.store.usesUserTable
			statements = append(statements, endStatement{q, r.Mark})
		}
	}
	if len(e.Claims) > 0 {
		text, args := sqlform.ClosingClaims(b.store.crypt(), b.store.sql, e.Claims)
		statements = append(statements, b.ownStatement(&request{sql: text, args: args}))
	}
	steps, err := sqlform.StepsArgument(b.store.crypt(), e.Claims)
	if err != nil {
		return nil, store.NoCulprit, err
	}
	if steps != "" {
		statements = append(statements, b.ownStatement(&request{sql: b.store.sql.ClaimSteps, args: []any{steps}}))
	}
	for _, q := range b.changeLines(lines.Entering(b.requestedMarks, &e), lines.Leaving(e.Claims)) {
		statements = append(statements, b.ownStatement(q))
	}
	if len(begun) > 0 {
		statements = append(statements, b.ownStatement(beginStreams(b.store.sql, begun)))
	}
	if len(moved) > 0 {
		statements = append(statements, b.ownStatement(b.moveStreams(moved)))
	}
	for _, q := range b.results {
		statements = append(statements, b.ownStatement(q))
	}
	if b.hasGuard {
		statements = append(statements, endStatement{&request{sql: b.store.sql.Close}, store.NoCulprit})
	}
	return statements, store.NoCulprit, nil
}

// ownStatement returns a statement about the store's own tables. If the statement fails, the failure does not count
// as an attempt of a message.
func (b *batch) ownStatement(q *request) endStatement {
	q.ownTables = !b.store.usesUserTable // code other than Semel may also use the user's own table
	return endStatement{q, store.NoCulprit}
}

// trim returns the statement that removes markers which this batch wrote; nil if no markers must be removed.
func (b *batch) trim(marks []int) *request {
	marks = slices.DeleteFunc(slices.Clone(marks), func(i int) bool { return !b.fresh[i] })
	if len(marks) == 0 {
		return nil
	}
	return trimStatement(b.store.sql.Trim, b.marks, marks)
}

// row returns the statements that write an inbox row, or count one more delivery in an existing row. No answer is read
// before COMMIT, so the statements themselves must handle an existing row with the same key. If the row is for a
// conflict, another batch may have written the existing row. If the row is not for a conflict, the existing row was
// left behind when its marker was removed.
func (b *batch) row(r *store.Row) ([]*request, error) {
	m := &b.marks[r.Mark]
	if r.Repeat {
		var all []*request
		for _, conflict := range b.store.crypt().Repeated(m, r.Conflict) {
			all = append(all, &request{sql: b.store.sql.Repeat, args: []any{m.Scope, m.Key, conflict}})
		}
		return all, nil
	}
	values, err := sqlform.RowValues(b.store.crypt(), m, r)
	if err != nil {
		return nil, err
	}
	columns := append([]any{m.Scope, m.Key, m.Long, b.store.crypt().RowConflict(m, r.Conflict)}, values...)
	if r.Conflict {
		return []*request{b.oneRowStatement(sqlform.Inbox, b.store.sql.ConflictRow, columns)}, nil
	}
	requests := []*request{b.oneRowStatement(sqlform.Inbox, b.store.sql.Row, columns)}
	if o := r.State.Outcome(); o != m.As {
		requests = append(requests, &request{sql: b.store.sql.Outcome, args: []any{int64(o), m.Scope, m.Key}})
	}
	return requests, nil
}

// oneRowStatement returns a statement that must write one row of one of Semel's tables. The server itself checks
// that one row was written, because COMMIT is sent together with the statement.
func (b *batch) oneRowStatement(table, text string, args []any) *request {
	return &request{sql: b.oneRowText(text), args: args, text: text, checkedTable: table}
}

var (
	_ admin.Results[pgx.Tx] = (*Store)(nil)
	_ admin.Results[*Queue] = (*QueuedStore)(nil)
)

// KeepResult implements admin.Results.
func (s *Store) KeepResult(ctx context.Context, tx pgx.Tx, of admin.ResultOf, result []byte) error {
	r, err := s.keptResult(of, result)
	if err == nil {
		var tag pgconn.CommandTag
		if tag, err = tx.Exec(ctx, r.sql, r.args...); err == nil && tag.RowsAffected() != 1 {
			err = s.wrapStoreError("result", sqlform.WrittenIn(sqlform.Results, tag.RowsAffected(), 1))
		}
	}
	return err
}

func (s *Store) keptResult(of admin.ResultOf, result []byte) (*request, error) {
	id, _ := sqlform.ID(of.ID)
	kept, err := s.crypt().Hide(sqlform.OfResult, of.ID, append([]byte{}, result...))
	return &request{sql: s.sql.KeepResult, args: []any{of.Scope, slices.Clone(id), kept}}, err
}

var _ admin.CommitResultWriter = (*batch)(nil)

// WriteResultAtCommit implements admin.CommitResultWriter. The statement is sent with COMMIT.
func (b *batch) WriteResultAtCommit(of admin.ResultOf, result []byte) {
	r, err := b.store.keptResult(of, result)
	if err != nil {
		b.resultError = err
		return
	}
	b.results = append(b.results, b.oneRowStatement(sqlform.Results, r.sql, r.args))
}

// KeepResult implements admin.Results. The statement is sent with the other statements of its batch, and takes no round
// trip of its own.
func (s *QueuedStore) KeepResult(_ context.Context, q *Queue, of admin.ResultOf, result []byte) error {
	r, err := s.direct.keptResult(of, result)
	if err != nil {
		return err
	}
	q.to.take(q.mark, &request{sql: r.sql, args: r.args, oneRow: true, text: r.sql, checkedTable: sqlform.Results})
	return q.Err()
}
