package memstore

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// Control implements admin.Controls.
func (s *Store) Control(_ context.Context, consumer string) (admin.Control, error) {
	if err := s.lock("control"); err != nil {
		return admin.Control{}, err
	}
	defer s.mu.Unlock()
	return s.controls[consumer], nil
}

// Pause implements admin.Controls.
func (s *Store) Pause(_ context.Context, consumer string, paused bool, a store.Act) error {
	if err := s.lock("control"); err != nil {
		return err
	}
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
	if err := s.lock("control"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	c := s.controls[consumer]
	c.PerSecond, c.Limit = perSecond, admin.Order{By: a.Who, Why: a.Why, At: s.now()}
	s.controls[consumer] = c
	s.record(sqlform.OfLimit(a, consumer, perSecond), 0, "done")
	return nil
}

// Consumers implements admin.Controls.
func (s *Store) Consumers(context.Context) ([]string, error) {
	if err := s.lock("control"); err != nil {
		return nil, err
	}
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

// Derivations implements admin.Derivations.
func (s *Store) Derivations(_ context.Context, consumer string) (all []admin.Derivation, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.derivations {
		if consumer == "" || d.Consumer == consumer {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b admin.Derivation) int {
		return cmp.Or(cmp.Compare(a.Consumer, b.Consumer), cmp.Compare(a.Generation, b.Generation))
	})
	return all, nil
}

// AddDerivation implements admin.Derivations.
func (s *Store) AddDerivation(_ context.Context, d admin.Derivation) (added bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, there := range s.derivations {
		if there.Consumer == d.Consumer && (there.Generation == d.Generation || there.Text == d.Text) {
			return false, nil
		}
	}
	d.First, d.Retired = s.now(), false
	s.derivations = append(s.derivations, d)
	return true, nil
}

// RetireDerivation implements admin.Derivations.
func (s *Store) RetireDerivation(_ context.Context, consumer string, generation int64, retired bool, a store.Act) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := slices.IndexFunc(s.derivations, func(d admin.Derivation) bool {
		return d.Consumer == consumer && d.Generation == generation && d.Retired != retired
	})
	if found < 0 {
		return fmt.Errorf("generation %d of consumer %s: %w", generation, consumer, semel.ErrChanged)
	}
	s.derivations[found].Retired = retired
	for i := range s.derivations {
		if d := &s.derivations[i]; retired && d.Consumer == consumer && d.Former == generation {
			d.Former = admin.NoFormer
		}
	}
	s.record(a, 0, "done")
	return nil
}

// Owner implements admin.Derivations.
func (s *Store) Owner(_ context.Context, consumer string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owners[consumer], nil
}

// SetOwner implements admin.Derivations.
func (s *Store) SetOwner(_ context.Context, consumer, was, owner string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owners[consumer] != was {
		return false, nil
	}
	s.owners[consumer] = owner
	return true, nil
}
