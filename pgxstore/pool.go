package pgxstore

import "github.com/semel-go/semel/contract"

var (
	_ contract.Pooled = (*Store)(nil)
	_ contract.Pooled = (*QueuedStore)(nil)
)

// MostConnections implements contract.Pooled: the pool's MaxConns.
func (s *Store) MostConnections() int { return int(s.pool.Config().MaxConns) }

// MostConnections implements contract.Pooled.
func (s *QueuedStore) MostConnections() int { return s.direct.MostConnections() }
