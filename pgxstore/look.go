package pgxstore

import (
	"context"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// LookUpMarkers implements store.Leases.
func (s *Store) LookUpMarkers(ctx context.Context, marks []store.Mark) ([]store.Verdict, error) {
	m := s.marking(sqlform.Marks(marks), nil)
	r := m.judge(s.sql.Judge)
	rows, err := s.pool.Query(ctx, r.sql, r.args...)
	if err == nil {
		err = r.read(rows)
		rows.Close()
	}
	if err == nil {
		err = rows.Err()
	}
	if err != nil {
		return nil, s.blameless("look", err)
	}
	for i := range m.verdicts {
		if m.verdicts[i].Kind == 0 {
			m.verdicts[i].Kind = store.Fresh
		}
	}
	return m.verdicts, nil
}

// LookUpMarkers implements store.Leases.
func (s *QueuedStore) LookUpMarkers(ctx context.Context, marks []store.Mark) ([]store.Verdict, error) {
	return s.direct.LookUpMarkers(ctx, marks)
}
