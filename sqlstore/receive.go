package sqlstore

import (
	"context"
	"database/sql"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/sqlform"
)

// ReceiveIn implements contract.TxReceiver.
func (s *Store) ReceiveIn(ctx context.Context, tx *sql.Tx, marks []contract.Mark, messages []*semel.Message) ([]contract.Verdict, error) {
	verdicts, err := s.MarkIn(ctx, tx, marks)
	if err != nil {
		return nil, err
	}
	receipts, err := Receipts(marks, verdicts, messages)
	if err != nil {
		return nil, s.blameless("receive", err)
	}
	for _, r := range receipts {
		if _, err := tx.ExecContext(ctx, s.sql.Row, r...); err != nil {
			return nil, s.blameless("receive", err)
		}
	}
	if _, err := s.enterLines(ctx, tx, sqlform.Marks(marks), lines.Received(marks, verdicts)); err != nil {
		return nil, s.blameless("receive", err)
	}
	return verdicts, nil
}

// Receipts are the arguments of the statement that writes a row, for the messages
// whose marks are fresh: for drivers of their own.
func Receipts(marks []contract.Mark, verdicts []contract.Verdict, messages []*semel.Message) (all [][]any, err error) {
	for i, m := range sqlform.Marks(marks) {
		if verdicts[i].Kind != contract.Fresh {
			continue
		}
		r := contract.Row{State: contract.StateReceived, Message: messages[i]}
		values, err := sqlform.RowValues(m.Mark, &r)
		if err != nil {
			return nil, err
		}
		all = append(all, append([]any{m.Scope, m.Key, m.Long, []byte{}}, values...))
	}
	return all, nil
}
