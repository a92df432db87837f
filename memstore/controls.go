package memstore

import (
	"context"
	"maps"
	"slices"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// Control implements admin.Controls.
func (s *Store) Control(_ context.Context, consumer string) (admin.Control, error) {
	if err := s.ask("control"); err != nil {
		return admin.Control{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.controls[consumer], nil
}

// Pause implements admin.Controls.
func (s *Store) Pause(_ context.Context, consumer string, paused bool, a store.Act) error {
	if err := s.ask("control"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.controls[consumer]
	c.Paused, c.Pause = paused, admin.Order{By: a.Who, Why: a.Why, At: s.now()}
	s.controls[consumer] = c
	s.record(sqlform.OfConsumer(a, consumer), 0, "done")
	return nil
}

// Limit implements admin.Controls.
func (s *Store) Limit(_ context.Context, consumer string, perSecond int, a store.Act) error {
	if err := sqlform.LimitFault(perSecond); err != nil {
		return err
	}
	if err := s.ask("control"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.controls[consumer]
	c.PerSecond, c.Limit = perSecond, admin.Order{By: a.Who, Why: a.Why, At: s.now()}
	s.controls[consumer] = c
	s.record(sqlform.OfLimit(a, consumer, perSecond), 0, "done")
	return nil
}

// Consumers implements admin.Controls.
func (s *Store) Consumers(context.Context) ([]string, error) {
	if err := s.ask("control"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]bool{}
	for key := range s.scopes {
		names[key.consumer] = true
	}
	for name := range s.controls {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names)), nil
}
