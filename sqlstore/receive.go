package sqlstore

import (
	"context"
	"database/sql"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
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
		if _, err := tx.ExecContext(ctx, s.sql.Again, r.Again...); err != nil {
			return nil, s.blameless("receive", err)
		}
		if _, err := tx.ExecContext(ctx, s.sql.Row, r.Row...); err != nil {
			return nil, s.blameless("receive", err)
		}
	}
	return verdicts, nil
}

// Receipt are the arguments of the two statements that write the row of a received
// message, one of which does nothing: a row may be left from a marker that is gone.
type Receipt struct{ Again, Row []any }

// Receipts are those of the messages whose marks are fresh: for drivers of their own.
func Receipts(marks []contract.Mark, verdicts []contract.Verdict, messages []*semel.Message) (all []Receipt, err error) {
	for i, m := range sqlform.Marks(marks) {
		if verdicts[i].Kind != contract.Fresh {
			continue
		}
		r := contract.Row{State: contract.StateReceived, Message: messages[i]}
		values, err := sqlform.RowValues(m.Mark, &r)
		if err != nil {
			return nil, err
		}
		key := []any{m.Scope, m.Key, []byte{}}
		all = append(all, Receipt{Again: append(append([]any{}, values...), key...), Row: append([]any{m.Scope, m.Key, m.Long, []byte{}}, values...)})
	}
	return all, nil
}
