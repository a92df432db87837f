package file

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// tracker tracks the lines of one file that were delivered and are not acked yet. Acked lines use no memory,
// even if an earlier line is not acked.
type tracker struct {
	// openLines contains the lines in the order of their offsets. Acked lines are removed from the beginning of
	// the slice, and wherever they are once they make up half of the slice.
	openLines []openLine
	// The number of acked lines in openLines.
	done int
	// The offset of the end of the last delivered line.
	read int64
}

type openLine struct {
	start   int64
	settled bool
	// nacked is true if the line was nacked and waits for its next delivery.
	nacked bool
}

// deliver adds a line. The offset of the new line must be higher than the offsets of all other lines.
func (t *tracker) deliver(start, end int64) {
	t.openLines = append(t.openLines, openLine{start: start})
	t.read = end
}

// find returns the line that starts at the offset; nil if the line is acked.
func (t *tracker) find(start int64) *openLine {
	i, ok := slices.BinarySearchFunc(t.openLines, start, func(o openLine, start int64) int {
		return cmp.Compare(o.start, start)
	})
	if !ok || t.openLines[i].settled {
		return nil
	}
	return &t.openLines[i]
}

// settle marks a line as acked, and reports whether the line was not acked before.
func (t *tracker) settle(start int64) bool {
	o := t.find(start)
	if o == nil {
		return false
	}
	o.settled = true
	t.done++
	for len(t.openLines) > 0 && t.openLines[0].settled {
		t.openLines = t.openLines[1:]
		t.done--
	}
	if t.done > len(t.openLines)/2 {
		t.openLines = slices.DeleteFunc(t.openLines, func(o openLine) bool { return o.settled })
		t.done = 0
	}
	return true
}

// countUnsettled returns the number of lines that are delivered or nacked.
func (t *tracker) countUnsettled() int { return len(t.openLines) - t.done }

// position returns the offset up to which all delivered lines are acked.
func (t *tracker) position() int64 {
	if len(t.openLines) > 0 {
		return t.openLines[0].start
	}
	return t.read
}

// nackedLine is a nacked line.
type nackedLine struct {
	due        time.Time
	generation *generation
	start, end int64
	// The field message is set for a line that cannot be read again.
	message *deliveryHandle
}

// nackHeap is a heap of nacked lines, ordered by the time of their next delivery and then by offset.
type nackHeap []*nackedLine

func (b nackHeap) Len() int      { return len(b) }
func (b nackHeap) Swap(i, j int) { b[i], b[j] = b[j], b[i] }
func (b nackHeap) Less(i, j int) bool {
	if !b[i].due.Equal(b[j].due) {
		return b[i].due.Before(b[j].due)
	}
	return cmp.Or(cmp.Compare(b[i].generation.number, b[j].generation.number), cmp.Compare(b[i].start, b[j].start)) < 0
}
func (b *nackHeap) Push(x any) { *b = append(*b, x.(*nackedLine)) }
func (b *nackHeap) Pop() any {
	last := (*b)[len(*b)-1]
	(*b)[len(*b)-1] = nil
	*b = (*b)[:len(*b)-1]
	return last
}

// mostBack is the number of nacked lines at which the source stops reading.
const mostBack = 10_000

// ledger is the state that Fetch, Settle, Flow and Close share.
type ledger struct {
	// mu guards the fields below, the trackers of all generations, and the field abandoned of each generation. No
	// blocking call is made while mu is held.
	mu          sync.Mutex
	nackedLines nackHeap
	paused      bool
	closed      bool
	// unsettled is the number of unsettled lines in all generations.
	unsettled int

	// The channel wake contains a token if a waiting Fetch must check for lines again.
	wake chan struct{}
}

func newLedger() ledger { return ledger{wake: make(chan struct{}, 1)} }

func (l *ledger) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// deliver records a line before it is delivered.
func (l *ledger) deliver(d *deliveryHandle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.generation.track.deliver(d.start, d.end)
	l.unsettled++
}

// settle records the ack or nack of a delivery.
func (l *ledger) settle(d *deliveryHandle, s source.Settlement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.Kind != semel.Nack {
		if d.generation.track.settle(d.start) {
			l.unsettled--
		}
		return
	}
	o := d.generation.track.find(d.start)
	if o == nil || o.nacked {
		return
	}
	o.nacked = true
	b := &nackedLine{due: time.Now().Add(s.After), generation: d.generation, start: d.start, end: d.end}
	if d.generation.abandoned {
		b.message = d
	}
	heap.Push(&l.nackedLines, b)
}

// takeDue removes and returns the next nacked line whose delay has passed. If no delay has passed, takeDue returns the
// time of the next nacked line, or the zero time if no line is nacked.
func (l *ledger) takeDue() (*nackedLine, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.nackedLines) > 0 {
		first := l.nackedLines[0]
		if time.Now().Before(first.due) {
			return nil, first.due
		}
		heap.Pop(&l.nackedLines)
		if o := first.generation.track.find(first.start); o != nil {
			o.nacked = false
			return first, time.Time{}
		}
	}
	return nil, time.Time{}
}

// putBack undoes takeDue.
func (l *ledger) putBack(b *nackedLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := b.generation.track.find(b.start); o != nil {
		o.nacked = true
		heap.Push(&l.nackedLines, b)
	}
}

// abandon records that the lines of a file cannot be read again. The method drops the nacked lines of the file and
// returns the number of dropped lines.
func (l *ledger) abandon(g *generation) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.abandoned = true
	before := len(l.nackedLines)
	l.nackedLines = slices.DeleteFunc(l.nackedLines, func(b *nackedLine) bool {
		if b.generation != g {
			return false
		}
		if g.track.settle(b.start) {
			l.unsettled--
		}
		return true
	})
	heap.Init(&l.nackedLines)
	return before - len(l.nackedLines)
}

// The method flags reports whether the source is paused and whether it is closed; Fetch needs both before it reads.
func (l *ledger) flags() (paused, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paused, l.closed
}

func (l *ledger) isSettled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsettled == 0
}

// hasNacked reports whether a nacked line waits for its next delivery.
func (l *ledger) hasNacked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.nackedLines) > 0
}

func (l *ledger) hasTooManyNacked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.nackedLines) >= mostBack
}
