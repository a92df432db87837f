package chance

import (
	"container/heap"
	"time"
)

// occurrence is a future event of a run.
type occurrence struct {
	At     time.Duration
	number uint64
	Do     func()
}

// Agenda has the future events of a run, ordered by time. Events at the same time keep the order in which they
// were added.
type Agenda struct {
	entries []occurrence
	number  uint64
}

func (a *Agenda) Len() int { return len(a.entries) }

func (a *Agenda) Swap(i, j int) { a.entries[i], a.entries[j] = a.entries[j], a.entries[i] }

func (a *Agenda) Push(x any) { a.entries = append(a.entries, x.(occurrence)) }

func (a *Agenda) Less(i, j int) bool {
	x, y := &a.entries[i], &a.entries[j]
	return x.At < y.At || x.At == y.At && x.number < y.number
}

func (a *Agenda) Pop() any {
	last := a.entries[len(a.entries)-1]
	a.entries = a.entries[:len(a.entries)-1]
	return last
}

// Add adds an event at a time.
func (a *Agenda) Add(at time.Duration, do func()) {
	a.number++
	heap.Push(a, occurrence{at, a.number, do})
}

// Take removes the next event and returns it.
func (a *Agenda) Take() occurrence { return heap.Pop(a).(occurrence) }
