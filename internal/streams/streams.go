// Package streams judges versions against the streams of a batch, the same for every
// store. A store asks it which streams it has to lock, tells what stands there, and
// writes with its commit what has become of them.
package streams

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Stream is a stream of a batch as its store knows it.
type Stream struct {
	Scope int64
	Name  []byte
	// Last is the last version that took effect, Print its content; of a stream that is
	// not there, the version before its first, or Unbegun.
	Last  int64
	Print semel.Fingerprint
	// Was, of one that moves, is where it was.
	Was int64

	first int64 // the version before its first; Unbegun if that is the first that is met
	now   int64 // Last with what the batch adds
	print semel.Fingerprint
}

// Unbegun is where a stream is that begins with the first version that is met of it, as
// long as it has met none: copies of what took effect before it was kept begin nothing.
const Unbegun = -1

// Batch is what a batch knows of its streams; nil where no mark asks for one.
type Batch struct {
	marks []store.Mark
	all   []*Stream // sorted, so that no two batches wait for each other
	of    []*Stream // by mark; nil for one that does not ask
	next  []bool    // by mark: it was its stream's next
	came  bool      // the turn of one has come with the end
	// met are the versions that are written without being judged, of streams that begin
	// with what is met first; known are the streams of all.
	met   []int
	known map[key]*Stream
}

type key struct {
	scope int64
	name  string
}

// Of finds the streams that the marks ask for.
func Of(marks []store.Mark) *Batch {
	var b *Batch
	for i := range marks {
		v := &marks[i].Version
		if v.Number == 0 || !v.Asks && !begins(&marks[i]) {
			continue
		}
		if b == nil {
			b = &Batch{marks: marks, of: make([]*Stream, len(marks)), next: make([]bool, len(marks)), known: map[key]*Stream{}}
		}
		if !v.Asks {
			continue
		}
		s := b.known[keyOf(&marks[i])]
		if s == nil {
			s = &Stream{Scope: marks[i].Scope, Name: v.Stream, Last: v.Start - 1, first: v.Start - 1}
			b.known[keyOf(&marks[i])] = s
			b.all = append(b.all, s)
		}
		b.of[i] = s
	}
	if b != nil {
		slices.SortFunc(b.all, compare)
	}
	return b
}

func keyOf(m *store.Mark) key { return key{m.Scope, string(m.Version.Stream)} }

// begins reports whether a message that is not judged begins a stream: it is set aside,
// or waits, and those that come behind it are to wait for it.
func begins(m *store.Mark) bool {
	return !m.Version.Asks && m.Version.Start == 0 && m.Version.Number > 0 && m.Claim.Token == 0
}

func compare(x, y *Stream) int {
	return cmp.Or(cmp.Compare(x.Scope, y.Scope), bytes.Compare(x.Name, y.Name))
}

// All are the streams of the batch, sorted. The store sets Last and Print of those
// that it knows.
func (b *Batch) All() []*Stream {
	if b == nil {
		return nil
	}
	return b.all
}

// Judge turns the verdicts of marks that may run into those of their streams. Marks
// are judged in their order: each counts on those before it.
func (b *Batch) Judge(verdicts []store.Verdict) {
	if b == nil {
		return
	}
	b.begin()
	b.meet(verdicts)
	for i, s := range b.of {
		m := &b.marks[i]
		if s == nil || verdicts[i].Kind != store.Fresh || m.As != store.Applied && m.As != store.Discarded {
			continue
		}
		n := m.Version.Number
		s.beginAt(n)
		switch {
		case n == s.now+1:
			b.next[i] = true
			s.now, s.print = n, m.Fingerprint
		case n > s.now: // also what was discarded when it counted on one that was taken back
			verdicts[i] = store.Verdict{Kind: store.Gap, Missing: n - s.now - 1}
		case m.As == store.Discarded:
		default:
			verdicts[i] = store.Verdict{Kind: store.Stale, Known: n == s.now && m.Fingerprint.Conflicts(s.print)}
		}
	}
}

// beginAt begins a stream that has not begun with a version.
func (s *Stream) beginAt(n int64) {
	if s.now == Unbegun {
		s.now, s.first = n-1, n-1
	}
}

// meet takes note of the fresh versions that are not judged, the smallest of each stream
// first: a later one is not to pass an earlier one that waits beside it.
func (b *Batch) meet(verdicts []store.Verdict) {
	for i := range b.marks {
		if verdicts[i].Kind == store.Fresh && begins(&b.marks[i]) {
			b.met = append(b.met, i)
		}
	}
	slices.SortStableFunc(b.met, func(i, j int) int { return cmp.Compare(b.marks[i].Version.Number, b.marks[j].Version.Number) })
	for _, i := range b.met {
		if s := b.known[keyOf(&b.marks[i])]; s != nil {
			s.beginAt(b.marks[i].Version.Number)
		}
	}
}

// Begun are the streams, beside those that the batch has, that begin with what it writes:
// where they have not begun, Last is what the store is to keep. What is taken back with
// the batch's end begins none.
func (b *Batch) Begun(trim []int) (all []*Stream) {
	if b == nil {
		return nil
	}
	for _, i := range b.met {
		if m := &b.marks[i]; b.known[keyOf(m)] == nil && !slices.Contains(trim, i) {
			all = append(all, &Stream{Scope: m.Scope, Name: m.Version.Stream, Last: m.Version.Number - 1})
		}
	}
	slices.SortStableFunc(all, compare) // the smallest version of each stays the first
	return slices.CompactFunc(all, func(x, y *Stream) bool { return compare(x, y) == 0 })
}

// Received are the streams that begin with messages which are received as they are.
func Received(marks []store.Mark, verdicts []store.Verdict) []*Stream {
	b := Of(marks)
	if b != nil {
		b.meet(verdicts)
	}
	return b.Begun(nil)
}

func (b *Batch) begin() {
	for _, s := range b.all {
		if s.now, s.print = s.Last, s.Print; s.now == Unbegun {
			s.now = s.first
		}
	}
}

// End says what a batch's end is in view of its streams: rows and claims that are to be
// blocked, or parked for a gap, and whose turn has come, are not. It returns the streams that move,
// with Last and Print as they are then; what is taken back, or does not end, moves
// none, nor do those after it.
func (b *Batch) End(e store.Ending) (store.Ending, []*Stream) {
	if b == nil {
		return e, nil
	}
	b.move(e)
	e.Rows, e.Claims = slices.Clone(e.Rows), slices.Clone(e.Claims)
	for i := range e.Rows {
		if r := &e.Rows[i]; r.State == store.StateBlocked && !r.Repeat && b.due(r.Mark) {
			r.State, r.After, r.Reason, b.came = store.StateReceived, 0, "", true
		}
	}
	for i := range e.Claims {
		c := &e.Claims[i]
		waits := c.Event == store.RowBlocked || c.Event == store.RowParked && c.Reason == semel.ReasonGap
		if waits && b.due(c.Mark) {
			if c.Event == store.RowParked {
				c.Error = "" // it says that the version before it has not come
			}
			c.Event, c.After, c.Reason, b.came = store.RowReleased, 0, "", true
		}
	}
	var moved []*Stream
	for _, s := range b.all {
		if s.now != s.Last {
			was := s.Last
			if was == Unbegun {
				was = s.first
			}
			moved = append(moved, &Stream{Scope: s.Scope, Name: s.Name, Was: was, Last: s.now, Print: s.print})
		}
	}
	return e, moved
}

// Turns are the versions whose turn has come with the move of streams, or is over: by the
// place of their stream from 1, and by number.
func Turns(moved []*Stream) (places, numbers []int64) {
	for i, s := range moved {
		for n := s.Was; n <= s.Last; n++ { // Last is less than the largest number
			places, numbers = append(places, int64(i+1)), append(numbers, n+1)
		}
	}
	return places, numbers
}

// Came reports whether the turn has come, with the batch's end, of a row that was to be
// blocked by it.
func (b *Batch) Came() bool { return b != nil && b.came }

// move finds where the streams are after an end.
func (b *Batch) move(e store.Ending) {
	b.begin()
	stays := make([]bool, len(b.of))
	for i := range b.marks {
		stays[i] = b.marks[i].Claim.Token != 0
	}
	for _, i := range e.Trim {
		stays[i] = true
	}
	for i := range e.Claims {
		c := &e.Claims[i]
		stays[c.Mark] = c.Event != store.RowCompleted && c.Event != store.RowDiscarded
	}
	for i, s := range b.of {
		if b.next[i] && !stays[i] && b.marks[i].Version.Number == s.now+1 {
			s.now, s.print = s.now+1, b.marks[i].Fingerprint
		}
	}
}

// due reports whether the turn of a mark has come.
func (b *Batch) due(mark int) bool {
	s := b.of[mark]
	return s != nil && b.marks[mark].Version.Number <= s.now+1
}
