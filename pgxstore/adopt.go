package pgxstore

import (
	"context"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore"
)

// Adopt returns a store for one consumer that marks in a table of the user's as
// well as in Semel's; see sqlstore.Store.Adopt, whose errors these are. Its
// Queued does so, too.
func (s *Store) Adopt(ctx context.Context, a sqlstore.Adopted) (*Store, error) {
	inner, err := s.inner.Adopt(ctx, a)
	if err != nil {
		return nil, err
	}
	return &Store{tables: tables{inner, s.exchange}, pool: s.pool, begin: s.begin, sql: sqlstore.Statements(inner, sqlform.Revision12{}), adopted: true}, nil
}
