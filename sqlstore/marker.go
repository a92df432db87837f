package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// Marker implements admin.MarkerReader.
func (s *Store) Marker(ctx context.Context, key semel.Key) (store.StoredMarker, bool, error) {
	s, err := s.ofConsumer(ctx, key.Consumer)
	if err != nil {
		return store.StoredMarker{}, false, err
	}
	id, _ := sqlform.ID([]byte(key.ID))
	var m store.StoredMarker
	var outcome, at, version int64
	var sum []byte
	err = s.db.QueryRowContext(ctx, s.sql.Marker, []byte(key.Consumer), []byte(key.Source), id).Scan(&outcome, &at, &version, &sum)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return store.StoredMarker{}, false, nil
	case err != nil:
		return store.StoredMarker{}, false, s.blameless("marker", err)
	}
	var known bool
	if m.Outcome, known = store.KnownOutcome(outcome); !known {
		return store.StoredMarker{}, false, s.blameless("marker", sqlform.NewerError(outcome, s.sql.Markers))
	}
	m.At, m.Fingerprint = time.UnixMilli(at), s.crypt.ReadPrint(sqlform.PrintOfID, id, version, sum)
	return m, true, nil
}
