package memstore

import (
	"context"

	"github.com/semel-go/semel/source"
)

// Offsets implements source.OffsetStore.
func (s *Store) Offsets(_ context.Context, consumer string, lanes []string) ([]source.LaneOffset, error) {
	if err := s.ask("offsets"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]source.LaneOffset, len(lanes))
	for i, name := range lanes {
		all[i] = s.offset(consumer, name)
	}
	return all, nil
}

// AdvanceOffsets implements source.OffsetStore.
func (s *Store) AdvanceOffsets(_ context.Context, consumer string, to []source.OffsetAdvance) ([]source.LaneOffset, error) {
	if err := s.ask("advance-before"); err != nil {
		return nil, err
	}
	before := s.advanceOffsets(consumer, to)
	if err := s.ask("advance-after"); err != nil {
		return nil, err
	}
	return before, nil
}

func (s *Store) advanceOffsets(consumer string, to []source.OffsetAdvance) []source.LaneOffset {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, lacking := make([]source.LaneOffset, len(to)), false
	for i, a := range to {
		before[i] = s.offset(consumer, a.Lane)
		lacking = lacking || a.Lacks(before[i])
	}
	for i, a := range to {
		if !lacking && a.Offset > before[i].Offset {
			s.positions[lane{consumer, a.Lane}] = source.Position{Offset: a.Offset}
		}
	}
	return before
}

// offset is called with mu held.
func (s *Store) offset(consumer, name string) source.LaneOffset {
	p, known := s.positions[lane{consumer, name}]
	if !known {
		return source.LaneOffset{Lane: name, Offset: source.NoOffset}
	}
	return source.LaneOffset{Lane: name, Offset: p.Offset}
}
