package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// generation is a generation of a consumer.
type generation struct {
	admin.StoredGeneration
	until time.Time // until this time, no batch may begin in the generation (the generation's fence)
	open  map[*batch]bool
}

// generationThat returns the first generation of a consumer for which matches returns true, or nil if there is none.
// The caller has locked the store.
func (s *Store) generationThat(consumer string, matches func(*generation) bool) *generation {
	for _, g := range s.generations[consumer] {
		if matches(g) {
			return g
		}
	}
	return nil
}

func (s *Store) generation(consumer string, number int64) *generation {
	return s.generationThat(consumer, func(g *generation) bool { return g.Number == number })
}

func (s *Store) isFenced(g *generation) bool { return g.until.After(s.now()) }

// checkCanBegin returns nil if a batch may begin in its generation, and an error if the batch may not begin. The caller
// has locked the store.
func (s *Store) checkCanBegin(w generations.Working) error {
	if w.In == 0 {
		return nil
	}
	if g := s.generation(w.Consumer, w.Number); g == nil || g.State != w.In || s.isFenced(g) {
		return fmt.Errorf("memstore: begin: generation %d of consumer %s is not %v, or a switch is under way: %w", w.Number, w.Consumer, w.In, generations.ErrNotUsable)
	}
	return nil
}

// checkCanCommit returns nil if a batch may commit in its generation, and an error if the batch may not commit. A fence
// (see admin.Generations) does not prevent open batches from committing. The caller has locked the store.
func (s *Store) checkCanCommit(w generations.Working) error {
	if w.In == 0 || s.generation(w.Consumer, w.Number).State == w.In {
		return nil
	}
	return fmt.Errorf("memstore: commit: generation %d of consumer %s is not %v any more: %w", w.Number, w.Consumer, w.In, generations.ErrNotUsable)
}

// countBegun and countEnded count the open batches of a generation. The caller has locked the store.
func (s *Store) countBegun(b *batch) {
	if b.working.In != 0 {
		s.generation(b.working.Consumer, b.working.Number).open[b] = true
	}
}

func (s *Store) countEnded(b *batch) {
	if b.working.In != 0 {
		delete(s.generation(b.working.Consumer, b.working.Number).open, b)
	}
}

// Generations implements admin.Generations.
func (s *Store) Generations(_ context.Context, consumer string) ([]admin.StoredGeneration, error) {
	if err := s.lock("generations"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var all []admin.StoredGeneration
	for _, g := range s.generations[consumer] {
		if longest := s.now().Add(admin.LongestFence); g.until.After(longest) { // the fence was set while the clock was ahead
			g.until = longest
		}
		one := g.StoredGeneration
		if s.isFenced(g) {
			one.Fenced = g.until.Sub(s.now())
		}
		all = append(all, one)
	}
	return all, nil
}

// BeginGenerations implements admin.Generations.
func (s *Store) BeginGenerations(_ context.Context, consumer string) error {
	if err := s.lock("generations"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if len(s.generations[consumer]) == 0 {
		s.addGeneration(consumer, generations.Active, store.Act{})
	}
	return nil
}

// addGeneration adds the next generation of a consumer. The caller has locked the store.
func (s *Store) addGeneration(consumer string, in generations.State, a store.Act) int64 {
	n, now := int64(len(s.generations[consumer])), s.now()
	s.generations[consumer] = append(s.generations[consumer], &generation{
		StoredGeneration: admin.StoredGeneration{Number: n, State: in, Since: now, Opened: now, By: a.Who, Why: a.Why}, open: map[*batch]bool{}})
	return n
}

// OpenGeneration implements admin.Generations.
func (s *Store) OpenGeneration(_ context.Context, consumer string, a store.Act) (int64, error) {
	if err := s.lock("generations"); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if len(s.generations[consumer]) == 0 || s.generationThat(consumer, func(g *generation) bool { return g.State == generations.Building }) != nil {
		return 0, fmt.Errorf("memstore: consumer %s has a generation that is being built, or none at all: %w", consumer, semel.ErrState)
	}
	n := s.addGeneration(consumer, generations.Building, a)
	s.record(sqlform.OfGeneration(a, consumer, n), 0, "done")
	return n, nil
}

// FenceGeneration implements admin.Generations.
func (s *Store) FenceGeneration(ctx context.Context, consumer string, number int64, most time.Duration) error {
	if err := s.ask("generations"); err != nil {
		return err
	}
	if most > admin.LongestFence {
		return fmt.Errorf("memstore: the fence of %v is too long; the maximum is %v", most, admin.LongestFence)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.generation(consumer, number)
	if g == nil || g.State != generations.Active && g.State != generations.Building || s.isFenced(g) {
		return fmt.Errorf("memstore: generation %d of consumer %s is neither active nor being built, or a switch is under way: %w", number, consumer, semel.ErrState)
	}
	g.until = s.now().Add(most)
	for len(g.open) > 0 {
		for b := range g.open {
			if err := s.wait(ctx, b, 0); err != nil {
				return &downError{"fence", err}
			}
			break
		}
	}
	return nil
}

// LiftFences implements admin.Generations.
func (s *Store) LiftFences(_ context.Context, consumer string) error {
	if err := s.lock("generations"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.liftFences(consumer)
	return nil
}

func (s *Store) liftFences(consumer string) {
	for _, g := range s.generations[consumer] {
		g.until = time.Time{}
	}
}

// SwitchGeneration implements admin.Generations.
func (s *Store) SwitchGeneration(_ context.Context, consumer string, from, to int64, a store.Act) error {
	if err := s.lock("generations"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	was, is := s.generation(consumer, from), s.generation(consumer, to)
	if was == nil || is == nil || was.State != generations.Active || is.State != generations.Building || !s.isFenced(was) || !s.isFenced(is) {
		return fmt.Errorf("memstore: generations %d and %d of consumer %s are not those of a switch, or their fences have ended: %w", from, to, consumer, semel.ErrState)
	}
	s.setGenerationState(was, generations.Old)
	s.setGenerationState(is, generations.Active)
	s.liftFences(consumer)
	s.record(sqlform.OfGeneration(a, consumer, to), 0, "done")
	return nil
}

func (s *Store) setGenerationState(g *generation, to generations.State) {
	g.State, g.Since = to, s.now()
}

// EndGeneration implements admin.Generations.
func (s *Store) EndGeneration(_ context.Context, consumer string, number int64, a store.Act) error {
	if err := s.lock("generations"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	g := s.generation(consumer, number)
	if g == nil || g.State != generations.Building && g.State != generations.Old {
		return fmt.Errorf("memstore: generation %d of consumer %s is neither old nor being built: %w", number, consumer, semel.ErrState)
	}
	s.setGenerationState(g, generations.Dropped)
	s.record(sqlform.OfGeneration(a, consumer, number), 0, "done")
	return nil
}

// ForgetGeneration implements admin.Generations.
func (s *Store) ForgetGeneration(_ context.Context, consumer string, number int64, most int) (removed int, err error) {
	if err := s.lock("generations"); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if g := s.generation(consumer, number); g == nil || g.State != generations.Dropped {
		return 0, fmt.Errorf("memstore: generation %d of consumer %s is not dropped: %w", number, consumer, semel.ErrState)
	}
	name := admin.GenerationName(consumer, number)
	of := func(scope int64) bool { return s.scopeOf[scope-1].consumer == name }
	kept := s.rows[:0]
	for _, r := range s.rows {
		if removed < most && of(r.key.scope) {
			delete(s.rowOf, r.key)
			removed++
			continue
		}
		kept = append(kept, r)
	}
	clear(s.rows[len(kept):])
	s.rows = kept
	for id := range s.streams {
		if removed < most && of(id.scope) {
			delete(s.streams, id)
			removed++
		}
	}
	for id := range s.markers {
		if removed < most && of(id.scope) {
			delete(s.markers, id)
			delete(s.results, id)
			removed++
		}
	}
	for at := range s.positions {
		if at.consumer == name {
			delete(s.positions, at)
		}
	}
	return removed, nil
}
