package pgxstore

import "github.com/semel-go/semel/internal/admin"

var (
	_ admin.Pooled = (*Store)(nil)
	_ admin.Pooled = (*QueuedStore)(nil)
)

// MostConnections implements admin.Pooled: the pool's MaxConns.
func (s *Store) MostConnections() int { return int(s.pool.Config().MaxConns) }

// MostConnections implements admin.Pooled.
func (s *QueuedStore) MostConnections() int { return s.direct.MostConnections() }
