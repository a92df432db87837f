package proof

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
)

// Event is a fault that happens when the progress of the fault test, from 0 to 1, reaches the value of At.
type Event struct {
	At float64
	Do func(context.Context)
}

// Schedule is the list of faults that a fault test injects.
type Schedule []Event

// Spread adds a fault several times, spread evenly over a part of the progress.
func (s *Schedule) Spread(from, to float64, count int, do func(context.Context)) {
	for n := range count {
		*s = append(*s, Event{from + (to-from)*(float64(n)+0.5)/float64(count), do})
	}
}

// Run triggers the events in order. Before each event, Run waits until the progress has reached the value of Event.At.
func (s Schedule) Run(ctx context.Context, reach func(ctx context.Context, at float64)) {
	slices.SortStableFunc(s, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	for _, e := range s {
		reach(ctx, e.At)
		e.Do(ctx)
	}
}

// Shuffled returns the numbers of n deliveries in an order determined by the seed: each id occurs at least once, and
// the other deliveries repeat ids.
func Shuffled(n, ids int, seed uint64) []int {
	random := rand.New(rand.NewPCG(seed, 1))
	all := make([]int, n)
	for i := range all {
		if all[i] = i; i >= ids {
			all[i] = random.IntN(ids)
		}
	}
	random.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}
