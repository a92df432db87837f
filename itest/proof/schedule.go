package proof

import (
	"cmp"
	"context"
	"slices"
)

// Event is a fault that happens when the proof's progress, from 0 to 1, reaches At.
type Event struct {
	At float64
	Do func(context.Context) error
}

// Schedule is the list of faults of a proof.
type Schedule []Event

// Spread adds a fault `count` times, spread evenly over a part of the progress.
func (s *Schedule) Spread(from, to float64, count int, do func(context.Context) error) {
	for n := range count {
		*s = append(*s, Event{from + (to-from)*(float64(n)+0.5)/float64(count), do})
	}
}

// Run triggers the events in order. It waits until the progress has reached each event's point.
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
