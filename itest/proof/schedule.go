package proof

import (
	"cmp"
	"context"
	"slices"
)

// Event is what happens when so much of the way from 0 to 1 is behind.
type Event struct {
	At float64
	Do func(context.Context) error
}

// Schedule is what happens in a proof.
type Schedule []Event

// Spread adds something that happens so many times, evenly over a part of the
// way.
func (s *Schedule) Spread(from, to float64, count int, do func(context.Context) error) {
	for n := range count {
		*s = append(*s, Event{from + (to-from)*(float64(n)+0.5)/float64(count), do})
	}
}

// Run has everything happen, one after the other, each when it is reached.
func (s Schedule) Run(ctx context.Context, reach func(ctx context.Context, at float64) error) error {
	slices.SortStableFunc(s, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	for _, e := range s {
		if err := reach(ctx, e.At); err != nil {
			return err
		}
		if err := e.Do(ctx); err != nil {
			return err
		}
	}
	return nil
}
