package metrics

import (
	"sync/atomic"
)

// tally is a histogram that many write at once: one addition a bucket and one for the sum.
// The client library's costs several times as much, of which a message that flies alone would
// pay all.
type tally struct {
	bounds []int64 // the upper ends of buckets, in units
	counts []atomic.Int64
	sum    atomic.Int64
	unit   float64 // what a unit is of what is told
}

// newTally returns one with the buckets of the table; unit is the fraction that is counted.
func newTally(name string, unit float64) *tally {
	m, _ := entry(name)
	t := &tally{unit: unit, counts: make([]atomic.Int64, len(m.buckets)+1)}
	for _, b := range m.buckets {
		t.bounds = append(t.bounds, int64(b/unit+0.5))
	}
	return t
}

// add counts a value.
func (t *tally) add(v int64) {
	i := 0
	for i < len(t.bounds) && v > t.bounds[i] {
		i++
	}
	t.counts[i].Add(1)
	t.sum.Add(v)
}

// read returns how many there were, their sum, and how many were below each bound.
func (t *tally) read(bounds []float64) (count uint64, sum float64, below map[float64]uint64) {
	below = make(map[float64]uint64, len(bounds))
	for i := range t.counts {
		count += uint64(t.counts[i].Load())
		if i < len(bounds) {
			below[bounds[i]] = count
		}
	}
	return count, float64(t.sum.Load()) * t.unit, below
}
