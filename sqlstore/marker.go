package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/sqlform"
)

// Marker implements contract.MarkerReader.
func (s *Store) Marker(ctx context.Context, key semel.Key) (contract.StoredMarker, bool, error) {
	id, _ := sqlform.ID([]byte(key.ID))
	var m contract.StoredMarker
	var at int64
	err := s.db.QueryRowContext(ctx, s.sql.Marker, []byte(key.Consumer), []byte(key.Source), id).Scan(&m.Outcome, &at)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return contract.StoredMarker{}, false, nil
	case err != nil:
		return contract.StoredMarker{}, false, s.blameless("marker", err)
	}
	m.At = time.UnixMilli(at)
	return m, true, nil
}
