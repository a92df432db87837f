package pgxstore

import (
	"context"
	"strings"

	"github.com/semel-go/semel"
)

// QueuedStore is a Store whose handlers get a *Queue. A batch takes two round
// trips whatever its size: one opens the transaction and writes the marks, one
// sends every queued statement with COMMIT. A callback that may refuse costs one
// more, marks that were there before another.
type QueuedStore struct {
	house
	direct *Store
}

// Begin implements semel.TxStore.
func (s *QueuedStore) Begin(ctx context.Context, o semel.TxOptions, marks []semel.Mark) (semel.Batch[*Queue], []semel.Verdict, error) {
	b, verdicts, err := s.direct.open(ctx, o, marks)
	if err != nil {
		return nil, nil, err
	}
	return &queued{batch: b}, verdicts, nil
}

// BeginRow implements semel.RowRetrier.
func (s *QueuedStore) BeginRow(ctx context.Context, o semel.TxOptions, number, revision int64, a semel.Act) (semel.Batch[*Queue], error) {
	b, err := s.direct.openRow(ctx, o, number, revision, a)
	if err != nil {
		return nil, err
	}
	return &queued{batch: b}, nil
}

// Classify implements semel.TxStore.
func (s *QueuedStore) Classify(err error) semel.Class { return s.direct.Classify(err) }

// one is a statement that fails unless it changes one row.
func (s *Store) one(sql string) string {
	sql = strings.TrimRight(sql, "; \t\r\n")
	return strings.Replace(s.sql["exec one"], "{statement}", sql, 1)
}
