package storetest_test

import (
	"context"

	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

// lowersOffsets writes what it is told.
type lowersOffsets struct{ *memstore.Store }

func (s lowersOffsets) AdvanceOffsets(ctx context.Context, consumer string, to []source.OffsetAdvance) ([]source.LaneOffset, error) {
	before, err := s.Store.AdvanceOffsets(ctx, consumer, to)
	for i, a := range to {
		if err == nil && !a.Lacks(before[i]) {
			err = s.SavePosition(ctx, consumer, a.Lane, source.Position{Offset: a.Offset})
		}
	}
	return before, err
}

// advancesEach advances each lane for itself.
type advancesEach struct{ *memstore.Store }

func (s advancesEach) AdvanceOffsets(ctx context.Context, consumer string, to []source.OffsetAdvance) (all []source.LaneOffset, err error) {
	for _, a := range to {
		before, err := s.Store.AdvanceOffsets(ctx, consumer, []source.OffsetAdvance{a})
		if err != nil {
			return nil, err
		}
		all = append(all, before...)
	}
	return all, nil
}

// wrongOffsets asks or tells something else.
type wrongOffsets struct {
	*memstore.Store
	ask      func(*source.OffsetAdvance)
	tell     func(before, to *source.LaneOffset)
	consumer string
}

func (s *wrongOffsets) Offsets(ctx context.Context, consumer string, lanes []string) ([]source.LaneOffset, error) {
	if s.consumer != "" {
		consumer = s.consumer
	}
	return s.Store.Offsets(ctx, consumer, lanes)
}

func (s *wrongOffsets) AdvanceOffsets(ctx context.Context, consumer string, to []source.OffsetAdvance) ([]source.LaneOffset, error) {
	if s.consumer != "" {
		consumer = s.consumer
	}
	asked := append([]source.OffsetAdvance{}, to...)
	for i := range asked {
		if s.ask != nil {
			s.ask(&asked[i])
		}
	}
	before, err := s.Store.AdvanceOffsets(ctx, consumer, asked)
	for i := range before {
		if s.tell != nil {
			s.tell(&before[i], &asked[i].LaneOffset)
		}
	}
	return before, err
}
