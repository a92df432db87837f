package sqlstore

import "github.com/semel-go/semel/contract"

var _ contract.Pooled = (*Store)(nil)

// MostConnections implements contract.Pooled: what sql.DB.SetMaxOpenConns has set.
func (s *Store) MostConnections() int { return max(s.db.Stats().MaxOpenConnections, 0) }
