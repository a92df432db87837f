package memstore

import (
	"context"

	"github.com/semel-go/semel/contract"
)

// LookUpMarkers implements contract.MarkerLookup.
func (s *Store) LookUpMarkers(ctx context.Context, marks []contract.Mark) ([]contract.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	verdicts := make([]contract.Verdict, len(marks))
	for i, m := range marks {
		verdicts[i] = s.seen(m)
	}
	return verdicts, nil
}

// seen is what is committed of a mark's identity; Fresh if nothing is.
func (s *Store) seen(m contract.Mark) contract.Verdict {
	if old, there := s.markers[identity{m.Scope, string(m.ID)}]; there && old.owner == nil {
		return s.judge(m, old)
	}
	return contract.Verdict{Kind: contract.Fresh}
}
