package sqlstore

import (
	"context"
	"database/sql"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/marking"
	"github.com/semel-go/semel/sqlstore/internal/ordering"
	"github.com/semel-go/semel/store"
)

// ReceiveIn implements store.CallerTx.
func (s *Store) ReceiveIn(ctx context.Context, tx *sql.Tx, marks []store.Mark, messages []*semel.Message, reason semel.Reason) ([]store.Verdict, error) {
	verdicts, err := marking.New(s.db).MarkIn(ctx, tx, marks)
	if err != nil {
		return nil, err
	}
	if reason != reasonname.None {
		return verdicts, park(ctx, s.db, tx, marks, verdicts, messages, reason)
	}
	if err := receive(ctx, s.db, tx, marks, verdicts, messages); err != nil {
		return nil, s.db.Blameless("receive", err)
	}
	if err := ordering.BeginStreams(ctx, s.db, tx, streams.Received(marks, verdicts)); err != nil {
		return nil, s.db.Blameless("receive", err)
	}
	if _, err := ordering.EnterLines(ctx, s.db, tx, sqlform.Marks(marks), lines.Received(marks, verdicts)); err != nil {
		return nil, s.db.Blameless("receive", err)
	}
	return verdicts, nil
}

// park writes parked rows for the messages that had no marker before.
func park(ctx context.Context, db *database.DB, tx *sql.Tx, marks []store.Mark, verdicts []store.Verdict, messages []*semel.Message, reason semel.Reason) error {
	for i, m := range sqlform.Marks(marks) {
		if verdicts[i].Kind != store.Fresh {
			continue
		}
		if err := receiveOne(ctx, db, tx, &m, &store.Row{State: store.StateParked, Reason: reason, Message: messages[i]}); err != nil {
			return db.Blameless("park", err)
		}
	}
	return nil
}

// receive writes inbox rows for the messages that had no marker before.
func receive(ctx context.Context, db *database.DB, tx *sql.Tx, marks []store.Mark, verdicts []store.Verdict, messages []*semel.Message) error {
	if db.Postgres != nil {
		pieces, err := sqlform.Receive(db.Crypt, marks, verdicts, messages)
		for i := 0; err == nil && i < len(pieces); i++ {
			err = db.WriteAll(ctx, tx, len(pieces[i].IDs), db.Postgres.Receive, database.Columns(pieces[i].Columns()))
		}
		return err
	}
	for i, m := range sqlform.Marks(marks) {
		if verdicts[i].Kind != store.Fresh {
			continue
		}
		if err := receiveOne(ctx, db, tx, &m, &store.Row{State: store.StateReceived, Message: messages[i]}); err != nil {
			return err
		}
	}
	return nil
}

// receiveOne writes the row of one received message.
func receiveOne(ctx context.Context, db *database.DB, tx *sql.Tx, m *sqlform.Mark, r *store.Row) error {
	values, err := sqlform.RowValues(db.Crypt, m, r)
	if err != nil {
		return err
	}
	return db.WriteAll(ctx, tx, 1, db.SQL.Row, append([]any{m.Scope, m.Key, m.Long, []byte{}}, values...))
}
