package pgxstore

import (
	"context"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/sqlform"
)

// LookUpMarkers implements contract.MarkerLookup.
func (s *Store) LookUpMarkers(ctx context.Context, marks []contract.Mark) ([]contract.Verdict, error) {
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
			m.verdicts[i].Kind = contract.Fresh
		}
	}
	return m.verdicts, nil
}

// LookUpMarkers implements contract.MarkerLookup.
func (s *QueuedStore) LookUpMarkers(ctx context.Context, marks []contract.Mark) ([]contract.Verdict, error) {
	return s.direct.LookUpMarkers(ctx, marks)
}
