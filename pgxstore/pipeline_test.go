package pgxstore

import (
	"testing"
	"time"
)

func TestASliceIsLongOnlyAfterManyFastStatements(t *testing.T) {
	for _, c := range []struct {
		slice, n int
		took     time.Duration
		want     int
	}{
		{leastSlice, 500, 2 * time.Millisecond, mostSlice},
		{leastSlice, 500, 40 * time.Millisecond, 50},
		{mostSlice, 500, 40 * time.Millisecond, 50},
		{mostSlice, 500, time.Minute, leastSlice},
		{mostSlice, 16, time.Second, leastSlice},
		{mostSlice, 2, time.Second, mostSlice},
		{leastSlice, 2, 0, leastSlice},
		{leastSlice, 500, 0, mostSlice},
	} {
		if got := sliceAfter(c.slice, c.n, c.took); got != c.want {
			t.Errorf("after a slice of %d and %d statements in %s it is %d, want %d", c.slice, c.n, c.took, got, c.want)
		}
	}
}
