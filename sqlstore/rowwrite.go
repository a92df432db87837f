package sqlstore

import (
	"context"
	"slices"

	"github.com/semel-go/semel"
)

// writeRow writes an inbox row with the commit, or counts one more delivery on
// the one that is there.
func (b *batch) writeRow(ctx context.Context, r *semel.Row) error {
	m := b.marks[r.Mark]
	key := []any{m.mark.Scope, m.id, rowConflict(m.mark, r.Conflict)}
	if r.Repeat {
		return b.exec(ctx, "repeat", key)
	}
	values, err := rowValues(m.mark, r)
	if err != nil {
		return err
	}
	n, err := b.execCount(ctx, "row", slices.Concat(key[:2], []any{m.long}, key[2:], values))
	if err == nil && n == 0 {
		err = b.rowExists(ctx, r, key, values)
	}
	if err != nil || r.Conflict || outcomeOf(r.State) == m.mark.As {
		return err
	}
	return b.exec(ctx, "outcome", []any{int64(outcomeOf(r.State)), m.mark.Scope, m.id})
}

// rowExists meets a row of the same key: a copy of a conflict that another
// batch wrote first, or the row of an identity whose marker is gone.
func (b *batch) rowExists(ctx context.Context, r *semel.Row, key, values []any) error {
	if r.Conflict {
		return b.exec(ctx, "repeat", key)
	}
	return b.exec(ctx, "again", append(values, key...))
}

func (b *batch) exec(ctx context.Context, name string, args []any) error {
	_, err := b.tx.ExecContext(ctx, b.store.sql[name], args...)
	return err
}

func (b *batch) execCount(ctx context.Context, name string, args []any) (int64, error) {
	done, err := b.tx.ExecContext(ctx, b.store.sql[name], args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

func rowConflict(m *semel.Mark, conflict bool) []byte {
	if conflict {
		return conflictOf(m.Fingerprint)
	}
	return []byte{}
}

// rowValues are a row's columns after its key, in the order of the statements.
func rowValues(m *semel.Mark, r *semel.Row) ([]any, error) {
	message := r.Message
	if message == nil {
		message = &semel.Message{}
	}
	sealed, err := sealed(message)
	if err != nil {
		return nil, err
	}
	return []any{
		int64(m.Fingerprint.Version), sumOf(m.Fingerprint), r.Surrogate, string(r.State), plain(string(r.Reason)),
		plain(message.Topic), int64(message.Origin.Partition), message.Origin.Offset, plain(message.Origin.BrokerID),
		message.Key, plain(message.Type()), plain(message.DataSchema()), string(sealed), message.Body,
		r.Attempts, r.Attempts, errorText(r.FirstError), errorText(r.LastError),
	}, nil
}

// outcomeOf is what a marker says of a message whose row is in this state.
func outcomeOf(state semel.RowState) semel.Outcome {
	switch state {
	case semel.StateCompleted:
		return semel.Applied
	case semel.StateParked, semel.StateFailedTerminal:
		return semel.Parked
	case semel.StateDeadLettered:
		return semel.DeadLettered
	case semel.StateDiscarded:
		return semel.Discarded
	default:
		return semel.Waiting
	}
}
