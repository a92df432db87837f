package metrics

import (
	"sync/atomic"
)

// tally is a histogram for concurrent writers. A new value costs two additions: one for the bucket and one
// for the sum. The histogram of the Prometheus library costs several times more, which matters for consumers
// with batches of one message.
type tally struct {
	bounds []int64 // upper bounds of the buckets, in units
	counts []atomic.Int64
	sum    atomic.Int64
	unit   float64 // value of one counted unit in the metric
}

// newTally returns a tally with the buckets of the named metric. The parameter unit is the size of one
// counted unit.
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

// read returns the number and the sum of all values, and for each bound the number of values up to the
// bound.
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
