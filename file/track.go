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
	// The field open contains the lines in the order of their offsets. Acked lines are removed from the beginning of
	// the slice, and wherever they are once they make up half of the slice.
	open []openLine
	// The number of acked lines in the field open.
	done int
	// The offset of the end of the last delivered line.
	read int64
}

type openLine struct {
	start   int64
	settled bool
	// The field back is true if the line was nacked and waits for its next delivery.
	back bool
}

// deliver adds a line. The offset of the new line must be higher than the offsets of all other lines.
func (t *tracker) deliver(start, end int64) {
	t.open = append(t.open, openLine{start: start})
	t.read = end
}

// find returns the line that starts at the offset; nil if the line is acked.
func (t *tracker) find(start int64) *openLine {
	i, ok := slices.BinarySearchFunc(t.open, start, func(o openLine, start int64) int {
		return cmp.Compare(o.start, start)
	})
	if !ok || t.open[i].settled {
		return nil
	}
	return &t.open[i]
}

// settle marks a line as acked, and reports whether the line was not acked before.
func (t *tracker) settle(start int64) bool {
	o := t.find(start)
	if o == nil {
		return false
	}
	o.settled = true
	t.done++
	for len(t.open) > 0 && t.open[0].settled {
		t.open = t.open[1:]
		t.done--
	}
	if t.done > len(t.open)/2 {
		t.open = slices.DeleteFunc(t.open, func(o openLine) bool { return o.settled })
		t.done = 0
	}
	return true
}

// The method unsettled returns the number of lines that are delivered or nacked.
func (t *tracker) unsettled() int { return len(t.open) - t.done }

// position returns the offset up to which all delivered lines are acked.
func (t *tracker) position() int64 {
	if len(t.open) > 0 {
		return t.open[0].start
	}
	return t.read
}

// handedBack is a nacked line.
type handedBack struct {
	due        time.Time
	from       *generation
	start, end int64
	// The field message is set for a line that cannot be read again.
	message *delivered
}

// backs is a heap of nacked lines, ordered by the time of their next delivery and then by offset.
type backs []*handedBack

func (b backs) Len() int      { return len(b) }
func (b backs) Swap(i, j int) { b[i], b[j] = b[j], b[i] }
func (b backs) Less(i, j int) bool {
	if !b[i].due.Equal(b[j].due) {
		return b[i].due.Before(b[j].due)
	}
	return cmp.Or(cmp.Compare(b[i].from.number, b[j].from.number), cmp.Compare(b[i].start, b[j].start)) < 0
}
func (b *backs) Push(x any) { *b = append(*b, x.(*handedBack)) }
func (b *backs) Pop() any {
	last := (*b)[len(*b)-1]
	(*b)[len(*b)-1] = nil
	*b = (*b)[:len(*b)-1]
	return last
}

// mostBack is the number of nacked lines at which the source stops reading.
const mostBack = 10_000

// ledger is the state that Fetch, Settle, Flow and Close share.
type ledger struct {
	// mu guards the fields below, the trackers of all generations and their field gone. No blocking call is
	// made while mu is held.
	mu     sync.Mutex
	back   backs
	paused bool
	closed bool
	// unsettled is the number of unsettled lines in all generations.
	unsettled int

	// The channel wake contains a token if a waiting Fetch must check for lines again.
	wake chan struct{}
}

func newLedger() ledger { return ledger{wake: make(chan struct{}, 1)} }

func (l *ledger) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// deliver records a line before it is delivered.
func (l *ledger) deliver(d *delivered) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.from.track.deliver(d.start, d.end)
	l.unsettled++
}

// settle records the ack or nack of a delivery.
func (l *ledger) settle(d *delivered, s source.Settlement) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.Kind != semel.Nack {
		if d.from.track.settle(d.start) {
			l.unsettled--
		}
		return
	}
	o := d.from.track.find(d.start)
	if o == nil || o.back {
		return
	}
	o.back = true
	b := &handedBack{due: time.Now().Add(s.After), from: d.from, start: d.start, end: d.end}
	if d.from.gone {
		b.message = d
	}
	heap.Push(&l.back, b)
}

// takeDue removes and returns the next nacked line whose delay has passed. If no delay has passed, takeDue returns the
// time of the next nacked line, or the zero time if no line is nacked.
func (l *ledger) takeDue() (*handedBack, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.back) > 0 {
		first := l.back[0]
		if time.Now().Before(first.due) {
			return nil, first.due
		}
		heap.Pop(&l.back)
		if o := first.from.track.find(first.start); o != nil {
			o.back = false
			return first, time.Time{}
		}
	}
	return nil, time.Time{}
}

// putBack undoes takeDue.
func (l *ledger) putBack(b *handedBack) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := b.from.track.find(b.start); o != nil {
		o.back = true
		heap.Push(&l.back, b)
	}
}

// abandon records that the lines of a file cannot be read again. The method drops the nacked lines of the file and
// returns the number of dropped lines.
func (l *ledger) abandon(g *generation) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	g.gone = true
	before := len(l.back)
	l.back = slices.DeleteFunc(l.back, func(b *handedBack) bool {
		if b.from != g {
			return false
		}
		if g.track.settle(b.start) {
			l.unsettled--
		}
		return true
	})
	heap.Init(&l.back)
	return before - len(l.back)
}

// The method flags reports whether the source is paused and whether it is closed; Fetch needs both before it reads.
func (l *ledger) flags() (paused, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paused, l.closed
}

func (l *ledger) settledAll() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsettled == 0
}

// waitsBack reports whether a nacked line waits for its next delivery.
func (l *ledger) waitsBack() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.back) > 0
}

func (l *ledger) tooManyBack() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.back) >= mostBack
}
