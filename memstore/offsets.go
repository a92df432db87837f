package memstore

import (
	"context"

	"github.com/semel-go/semel/contract"
)

// Offsets implements contract.OffsetStore.
func (s *Store) Offsets(_ context.Context, consumer string, lanes []string) ([]contract.LaneOffset, error) {
	if err := s.ask("offsets"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]contract.LaneOffset, len(lanes))
	for i, name := range lanes {
		all[i] = s.offset(consumer, name)
	}
	return all, nil
}

// AdvanceOffsets implements contract.OffsetStore.
func (s *Store) AdvanceOffsets(_ context.Context, consumer string, to []contract.OffsetAdvance) ([]contract.LaneOffset, error) {
	if err := s.ask("advance-before"); err != nil {
		return nil, err
	}
	before := s.advanceOffsets(consumer, to)
	if err := s.ask("advance-after"); err != nil {
		return nil, err
	}
	return before, nil
}

func (s *Store) advanceOffsets(consumer string, to []contract.OffsetAdvance) []contract.LaneOffset {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, lacking := make([]contract.LaneOffset, len(to)), false
	for i, a := range to {
		before[i] = s.offset(consumer, a.Lane)
		lacking = lacking || a.Lacks(before[i])
	}
	for i, a := range to {
		if !lacking && a.Offset > before[i].Offset {
			s.positions[lane{consumer, a.Lane}] = contract.Position{Offset: a.Offset}
		}
	}
	return before
}

// offset is called with mu held.
func (s *Store) offset(consumer, name string) contract.LaneOffset {
	p, known := s.positions[lane{consumer, name}]
	if !known {
		return contract.LaneOffset{Lane: name, Offset: contract.NoOffset}
	}
	return contract.LaneOffset{Lane: name, Offset: p.Offset}
}
