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
	s, err := s.ofConsumer(ctx, key.Consumer)
	if err != nil {
		return contract.StoredMarker{}, false, err
	}
	id, _ := sqlform.ID([]byte(key.ID))
	var m contract.StoredMarker
	var outcome, at, version int64
	var sum []byte
	err = s.db.QueryRowContext(ctx, s.sql.Marker, []byte(key.Consumer), []byte(key.Source), id).Scan(&outcome, &at, &version, &sum)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return contract.StoredMarker{}, false, nil
	case err != nil:
		return contract.StoredMarker{}, false, s.blameless("marker", err)
	}
	var known bool
	if m.Outcome, known = contract.KnownOutcome(outcome); !known {
		return contract.StoredMarker{}, false, s.blameless("marker", sqlform.NewerError(outcome, s.sql.Markers))
	}
	m.At, m.Fingerprint = time.UnixMilli(at), s.crypt.ReadPrint(sqlform.PrintOfID, id, version, sum)
	return m, true, nil
}
