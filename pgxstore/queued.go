package pgxstore

import (
	"context"
	"strings"

	"github.com/semel-go/semel/internal/sqltext"
	"github.com/semel-go/semel/store"
)

// QueuedStore is a Store whose handlers get a *Queue. A batch takes two round
// trips whatever its size: one opens the transaction and writes the marks, one
// sends every queued statement with COMMIT. A callback that may refuse costs one
// more, marks that were there before another.
type QueuedStore struct {
	tables
	direct *Store
}

// Limits implements store.TxStore.
func (s *QueuedStore) Limits() store.Limits { return s.direct.Limits() }

// Begin implements store.TxStore.
func (s *QueuedStore) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*Queue], []store.Verdict, error) {
	b, verdicts, err := s.direct.open(ctx, o, marks, false)
	if err != nil {
		return nil, nil, err
	}
	return &queued{batch: b}, verdicts, nil
}

// Classify implements store.TxStore.
func (s *QueuedStore) Classify(err error) store.Class { return s.direct.Classify(err) }

// one is a statement that fails unless it changes one row.
func (b *batch) one(sql string) string {
	if text, ok := b.known.ones[sql]; ok {
		return text
	}
	if len(b.known.ones) >= b.known.most {
		clear(b.known.ones)
	}
	text := b.store.One(sql)
	b.known.ones[sql] = text
	return text
}

// One is the text that Queue.ExecOne sends for a statement: for whoever has the
// server prepare it at start.
func (s *Store) One(statement string) string {
	return strings.Replace(s.sql.ExecOne, "{statement}", sqltext.Postgres().Bare(statement), 1)
}
