package memstore

import (
	"context"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Preview implements admin.Previewer.
func (s *Store) Preview(_ context.Context, consumer string, generation int64, all []admin.PreviewQuery) ([]store.Verdict, error) {
	if err := s.ask("foretell"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	verdicts := make([]store.Verdict, len(all))
	for i := range all {
		verdicts[i].Kind = store.Fresh
		number, known := s.scopes[scope{consumer, all[i].Source, generation}]
		if !known {
			continue
		}
		mark := all[i].Mark
		mark.Scope = number
		verdicts[i] = s.seen(mark)
	}
	return verdicts, nil
}
