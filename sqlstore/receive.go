package sqlstore

import (
	"context"
	"database/sql"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/streams"
)

// ReceiveIn implements contract.TxReceiver.
func (s *Store) ReceiveIn(ctx context.Context, tx *sql.Tx, marks []contract.Mark, messages []*semel.Message) ([]contract.Verdict, error) {
	verdicts, err := s.MarkIn(ctx, tx, marks)
	if err != nil {
		return nil, err
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

// receive writes the rows of the messages whose marks are fresh.
func (s *Store) receive(ctx context.Context, tx *sql.Tx, marks []contract.Mark, verdicts []contract.Verdict, messages []*semel.Message) error {
	if s.postgres != nil {
		pieces, err := sqlform.Receive(marks, verdicts, messages)
		for i := 0; err == nil && i < len(pieces); i++ {
			err = allOf(pieces[i])(tx.ExecContext(ctx, s.postgres.Receive, columns(pieces[i].Columns())...))
		}
		return err
	}
	for i, m := range sqlform.Marks(marks) {
		if verdicts[i].Kind != contract.Fresh {
			continue
		}
		values, err := sqlform.RowValues(m.Mark, &contract.Row{State: contract.StateReceived, Message: messages[i]})
		if err == nil {
			one := &sqlform.Received{IDs: [][]byte{m.Key}}
			err = allOf(one)(tx.ExecContext(ctx, s.sql.Row, append([]any{m.Scope, m.Key, m.Long, []byte{}}, values...)...))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// allOf is for the result of a statement that is to write all of these rows.
func allOf(of *sqlform.Received) func(sql.Result, error) error {
	return func(done sql.Result, err error) error {
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		if err != nil {
			return err
		}
		return of.Written(n)
	}
}
