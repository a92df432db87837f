package sqlstore

import (
	"context"
	"database/sql"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/store"
)

// ReceiveIn implements store.CallerTx.
func (s *Store) ReceiveIn(ctx context.Context, tx *sql.Tx, marks []store.Mark, messages []*semel.Message, reason semel.Reason) ([]store.Verdict, error) {
	verdicts, err := s.MarkIn(ctx, tx, marks)
	if err != nil {
		return nil, err
	}
	if reason != semel.ReasonNone {
		return verdicts, s.park(ctx, tx, marks, verdicts, messages, reason)
	}
	if err := s.receive(ctx, tx, marks, verdicts, messages); err != nil {
		return nil, s.blameless("receive", err)
	}
	if err := s.beginStreams(ctx, tx, streams.Received(marks, verdicts)); err != nil {
		return nil, s.blameless("receive", err)
	}
	if _, err := s.enterLines(ctx, tx, sqlform.Marks(marks), lines.Received(marks, verdicts)); err != nil {
		return nil, s.blameless("receive", err)
	}
	return verdicts, nil
}

// park writes parked rows of the messages whose marks are fresh.
func (s *Store) park(ctx context.Context, tx *sql.Tx, marks []store.Mark, verdicts []store.Verdict, messages []*semel.Message, reason semel.Reason) error {
	for i, m := range sqlform.Marks(marks) {
		if verdicts[i].Kind != store.Fresh {
			continue
		}
		if err := s.receiveOne(ctx, tx, &m, &store.Row{State: store.StateParked, Reason: reason, Message: messages[i]}); err != nil {
			return s.blameless("park", err)
		}
	}
	return nil
}

// receive writes the rows of the messages whose marks are fresh.
func (s *Store) receive(ctx context.Context, tx *sql.Tx, marks []store.Mark, verdicts []store.Verdict, messages []*semel.Message) error {
	if s.postgres != nil {
		pieces, err := sqlform.Receive(s.crypt, marks, verdicts, messages)
		for i := 0; err == nil && i < len(pieces); i++ {
			err = s.writeAll(ctx, tx, len(pieces[i].IDs), s.postgres.Receive, columns(pieces[i].Columns()))
		}
		return err
	}
	for i, m := range sqlform.Marks(marks) {
		if verdicts[i].Kind != store.Fresh {
			continue
		}
		if err := s.receiveOne(ctx, tx, &m, &store.Row{State: store.StateReceived, Message: messages[i]}); err != nil {
			return err
		}
	}
	return nil
}

// receiveOne writes one row of a message that is received.
func (s *Store) receiveOne(ctx context.Context, tx *sql.Tx, m *sqlform.Mark, r *store.Row) error {
	values, err := sqlform.RowValues(s.crypt, m, r)
	if err != nil {
		return err
	}
	return s.writeAll(ctx, tx, 1, s.sql.Row, append([]any{m.Scope, m.Key, m.Long, []byte{}}, values...))
}

// writeAll runs a statement that writes so many rows of those that are received.
func (s *Store) writeAll(ctx context.Context, tx *sql.Tx, rows int, statement string, args []any) error {
	return writeIn(ctx, tx, sqlform.Inbox, rows, statement, args...)
}

// writeIn runs a statement that writes so many rows of a table. Fewer are an error: a trigger
// or a rule swallowed them.
func writeIn(ctx context.Context, tx *sql.Tx, table string, rows int, statement string, args ...any) error {
	done, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	n, err := done.RowsAffected()
	if err != nil {
		return err
	}
	return sqlform.WrittenIn(table, n, rows)
}
