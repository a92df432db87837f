package memstore

import (
	"context"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Suppress implements admin.Requeuer.
func (s *Store) Suppress(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return each(rows, func(number, revision int64) error { return s.suppress(ctx, number, revision, a) })
}

func (s *Store) suppress(ctx context.Context, number, revision int64, a store.Act) error {
	if err := s.ask("rows"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(ctx, number, revision)
	if err != nil {
		return err
	}
	if err := admin.MayAct(store.RowSuppressed, &r.StoredRow, false); err != nil {
		return err
	}
	if m := s.markers[r.key.identity]; s.owns(r) && m.outcome != store.Applied {
		s.setOutcome(r.key.identity, store.Parked)
	}
	r.State, r.Reason, r.DueAt = store.StateParked, semel.ReasonSuppressed, time.Time{}
	s.touch(r)
	s.record(a, number, "done")
	return nil
}
