package sqlstore

import "github.com/semel-go/semel/internal/admin"

var _ admin.Pooled = (*Store)(nil)

// MostConnections implements admin.Pooled: what sql.DB.SetMaxOpenConns has set.
func (s *Store) MostConnections() int { return max(s.db.Stats().MaxOpenConnections, 0) }
