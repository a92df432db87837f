package pgxstore

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/store"
)

var _ admin.Editor = (*Store)(nil)

// parkIn writes parked rows for the messages that had no marker before.
func (s *Store) parkIn(ctx context.Context, tx pgx.Tx, marks []store.Mark, verdicts []store.Verdict, messages []*semel.Message, reason semel.Reason) error {
	var rows pgx.Batch
	err := s.parkRows(marks, verdicts, messages, reason, func(text string, args []any) {
		rows.Queue(text, args...).Exec(func(tag pgconn.CommandTag) error { return sqlform.Written(tag.RowsAffected(), 1) })
	})
	if err == nil && rows.Len() > 0 {
		err = tx.SendBatch(ctx, &rows).Close()
	}
	if err != nil {
		return s.wrapStoreError("park", err)
	}
	return nil
}

// parkRows calls the function send once for each message that had no marker before, with the statement that writes a
// parked row.
func (s *Store) parkRows(marks []store.Mark, verdicts []store.Verdict, messages []*semel.Message, reason semel.Reason, send func(text string, args []any)) error {
	for i, m := range sqlform.Marks(marks) {
		if verdicts[i].Kind != store.Fresh {
			continue
		}
		values, err := sqlform.RowValues(s.crypt(), &m, &store.Row{State: store.StateParked, Reason: reason, Message: messages[i]})
		if err != nil {
			return err
		}
		send(s.sql.Row, append([]any{m.Scope, m.Key, m.Long, []byte{}}, values...))
	}
	return nil
}

// ReceiveQueued implements admin.QueueStore. The markers must have neither a previous identity nor an age.
// With ReceiveQueued, the queue needs one additional round trip, because the rows are sent after the answer for the
// markers. If a marker exists already, the queue needs two additional round trips, because the store then reads the
// marker.
func (s *QueuedStore) ReceiveQueued(q *Queue, marks []store.Mark, messages []*semel.Message, reason semel.Reason, judge func([]store.Verdict) error) error {
	m := s.direct.newMarking(sqlform.Marks(marks), nil)
	end := func() error {
		if err := judge(m.verdicts); err != nil {
			return err
		}
		return s.direct.queueRows(q, marks, m.verdicts, messages, reason)
	}
	write := m.insertStatement(s.direct.sql.Mark)
	q.Query(write.sql, write.args...).Do(func(rows pgx.Rows) error {
		if err := write.read(rows); err != nil {
			return err
		}
		if len(m.existingMarks()) == 0 {
			return end()
		}
		look := m.existingStatement(s.direct.sql.Judge)
		q.Query(look.sql, look.args...).Do(func(rows pgx.Rows) error {
			if err := look.read(rows); err != nil {
				return err
			}
			if err := m.fault(); err != nil {
				return err
			}
			return end()
		})
		return nil
	})
	return q.Err()
}

// queueRows queues the rows for the messages that had no marker before.
func (s *Store) queueRows(q *Queue, marks []store.Mark, verdicts []store.Verdict, messages []*semel.Message, reason semel.Reason) error {
	if reason != reasonname.None {
		return s.parkRows(marks, verdicts, messages, reason, func(text string, args []any) { q.write(1, text, args) })
	}
	pieces, err := sqlform.Receive(s.crypt(), marks, verdicts, messages)
	if err != nil {
		return err
	}
	for _, r := range pieces {
		q.write(len(r.IDs), s.sql.Receive, r.Columns())
	}
	if begun := streams.Received(marks, verdicts); len(begun) > 0 {
		r := beginStreams(s.sql, begun)
		q.Exec(r.sql, r.args...)
	}
	texts, args := enqueueStatements(s.sql, sqlform.Marks(marks), lines.Received(marks, verdicts))
	for i := range texts {
		q.Exec(texts[i], args[i]...)
	}
	return nil
}

// write queues a statement that must write the expected number of rows.
func (q *Queue) write(expected int, text string, args []any) {
	q.Query(text, args...).Do(func(r pgx.Rows) error {
		r.Close()
		if err := r.Err(); err != nil {
			return err
		}
		return sqlform.Written(r.CommandTag().RowsAffected(), expected)
	})
}
