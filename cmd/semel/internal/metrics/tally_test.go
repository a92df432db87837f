package metrics

import (
	"maps"
	"testing"
)

func TestAValueOnTheBoundOfABucketIsInIt(t *testing.T) {
	t.Run("K1_as_the_label_le_says", func(t *testing.T) {
		m, _ := entry("semel_batch_messages")
		h := newTally(m.name, 1)
		for _, v := range []int64{1, 2, 3, 10000, 10001} {
			h.add(v)
		}
		count, sum, below := h.read(m.buckets)
		want := map[float64]uint64{1: 1, 2: 2, 5: 3, 10: 3, 25: 3, 50: 3, 100: 3, 250: 3, 500: 3, 1000: 3, 10000: 4}
		if count != 5 || sum != 20007 || !maps.Equal(below, want) {
			t.Errorf("%d values, sum %v, buckets %v, want %v", count, sum, below, want)
		}
	})
}
