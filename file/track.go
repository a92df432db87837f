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

// tracker knows which lines of one file were delivered and are not settled.
// What is settled takes no room, however long one line before it stays open.
type tracker struct {
	// open are the lines, in their order; settled ones go as soon as they are
	// the first, or half of all.
	open []openLine
	// done counts the settled ones in open.
	done int
	// read is the end of the last delivered line.
	read int64
}

type openLine struct {
	start   int64
	settled bool
	// back says that the line was handed back and is not delivered again yet.
	back bool
}

// deliver adds a line, which lies after all others.
func (t *tracker) deliver(start, end int64) {
	t.open = append(t.open, openLine{start: start})
	t.read = end
}

// find returns the open line that starts here; nil if it is settled.
func (t *tracker) find(start int64) *openLine {
	i, ok := slices.BinarySearchFunc(t.open, start, func(o openLine, start int64) int {
		return cmp.Compare(o.start, start)
	})
	if !ok || t.open[i].settled {
		return nil
	}
	return &t.open[i]
}

// settle takes a line out and reports whether it was open.
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

// unsettled counts the lines that are delivered or handed back.
func (t *tracker) unsettled() int { return len(t.open) - t.done }

// position is the offset before which every delivered line is settled.
func (t *tracker) position() int64 {
	if len(t.open) > 0 {
		return t.open[0].start
	}
	return t.read
}

// handedBack is a line that comes again.
type handedBack struct {
	due        time.Time
	from       *generation
	start, end int64
	// message is kept where the line cannot be read again.
	message *delivered
}

// backs are the lines handed back, a heap by when they are due and then by
// where they stand.
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

// mostBack is how many lines may be handed back before no further line is
// read: what comes again has to be worked off first.
const mostBack = 10_000

// ledger is what Fetch, Settle, Flow and Close share.
type ledger struct {
	// mu protects the fields below it, the trackers of all generations and
	// their gone. It is never held across a call that can block.
	mu     sync.Mutex
	back   backs
	paused bool
	closed bool
	// unsettled counts over all generations.
	unsettled int

	// wake holds one token when something happened that a waiting Fetch
	// should look at.
	wake chan struct{}
}

func newLedger() ledger { return ledger{wake: make(chan struct{}, 1)} }

func (l *ledger) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// deliver notes a line that is about to be delivered.
func (l *ledger) deliver(d *delivered) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.from.track.deliver(d.start, d.end)
	l.unsettled++
}

// settle notes what became of a delivery.
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

// takeDue takes the next line that was handed back and is due. Without one it
// returns when the next is due, the zero time if there is none.
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

// abandon says that a file's lines cannot be read again, drops those that were
// handed back and returns how many they were.
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

// flags are what Fetch has to know before it reads.
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

// waitsBack reports whether a line that was handed back has to come again.
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
