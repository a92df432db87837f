package simulator

import (
	"container/heap"
	"time"
)

// occurrence is something that will happen.
type occurrence struct {
	at     time.Duration
	number uint64
	do     func()
}

// agenda is what will happen, the soonest first; at one moment, what was
// entered first.
type agenda struct {
	entries []occurrence
	number  uint64
}

func (a *agenda) Len() int      { return len(a.entries) }
func (a *agenda) Swap(i, j int) { a.entries[i], a.entries[j] = a.entries[j], a.entries[i] }
func (a *agenda) Push(x any)    { a.entries = append(a.entries, x.(occurrence)) }

func (a *agenda) Less(i, j int) bool {
	x, y := &a.entries[i], &a.entries[j]
	return x.at < y.at || x.at == y.at && x.number < y.number
}

func (a *agenda) Pop() any {
	last := a.entries[len(a.entries)-1]
	a.entries = a.entries[:len(a.entries)-1]
	return last
}

func (a *agenda) add(at time.Duration, do func()) {
	a.number++
	heap.Push(a, occurrence{at, a.number, do})
}

func (a *agenda) take() occurrence { return heap.Pop(a).(occurrence) }
