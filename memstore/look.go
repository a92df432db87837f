package memstore

import (
	"context"

	"github.com/semel-go/semel/store"
)

// LookUpMarkers implements store.Leases.
func (s *Store) LookUpMarkers(ctx context.Context, marks []store.Mark) ([]store.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	verdicts := make([]store.Verdict, len(marks))
	for i, m := range marks {
		verdicts[i] = s.seen(m)
	}
	return verdicts, nil
}

// seen is what is committed of a mark's identity; Fresh if nothing is.
func (s *Store) seen(m store.Mark) store.Verdict {
	if old, there := s.markers[identity{m.Scope, string(m.ID)}]; there && old.owner == nil {
		return s.judge(m, old)
	}
	return store.Verdict{Kind: store.Fresh}
}
