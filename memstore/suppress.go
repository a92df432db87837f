package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Suppress implements admin.IntentHolder.
func (s *Store) Suppress(ctx context.Context, number, revision int64, a store.Act) error {
	if err := s.ask("rows"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(ctx, number, revision)
	if err != nil {
		return err
	}
	next, legal := r.State.After(store.RowSuppressed)
	if !legal {
		return fmt.Errorf("row %d is %s: %w", number, r.State, semel.ErrState)
	}
	if m := s.markers[r.key.identity]; s.owns(r) && m.outcome != store.Applied {
		s.setOutcome(r.key.identity, store.Parked)
	}
	r.State, r.Reason, r.DueAt = next, semel.ReasonSuppressed, time.Time{}
	s.touch(r)
	s.record(a, number, "done")
	return nil
}
