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

func TestTimeLimitOfASlice(t *testing.T) {
	requests := func(limited, own int) (all []*request) {
		for i := range limited + own {
			all = append(all, &request{limited: i < limited})
		}
		return all
	}
	long := time.Duration(1<<63 - 1)
	for _, c := range []struct {
		limited, own      int
		statement, answer time.Duration
		most, want        time.Duration
	}{
		{0, 1, time.Second, 30 * time.Second, long, 30 * time.Second},
		{0, 16, time.Second, 30 * time.Second, long, 30 * time.Second},
		{0, 17, time.Second, 30 * time.Second, long, time.Minute},
		{0, 128, time.Second, 30 * time.Second, long, 4 * time.Minute},
		{16, 0, 30 * time.Second, 30 * time.Second, 16 * 30 * time.Second, 510 * time.Second},
		{128, 0, 30 * time.Second, 30 * time.Second, 16 * 30 * time.Second, 510 * time.Second},
		{128, 0, 100 * time.Millisecond, 200 * time.Millisecond, leastAllowance, 13 * time.Second},
		{128, 0, time.Second, time.Second, leastAllowance, 61 * time.Second},
		{100, 28, time.Second, time.Second, long, 102 * time.Second},
	} {
		l := &link{answer: c.answer, statement: c.statement}
		if got, bounded := l.allowance(requests(c.limited, c.own), c.most); got != c.want || !bounded {
			t.Errorf("%d statements of %s and %d of Semel's own may take %s (%v), want %s", c.limited, c.statement, c.own, got, bounded, c.want)
		}
	}
	if _, bounded := (&link{answer: time.Second}).allowance(requests(1, 0), long); bounded {
		t.Error("a statement without a limit has one")
	}
}
