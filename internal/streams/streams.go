// Package streams compares the versions of a batch with their streams, by the same rules for every store. The
// store asks which streams to lock, passes their stored state, and writes their new state when it commits.
package streams

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Stream is a stream of a batch, with its stored state.
type Stream struct {
	Scope int64
	Name  []byte
	// Last is the last version that was applied, and Print is its fingerprint. If the stream is not stored,
	// Last is the version before its first version, or Unbegun.
	Last  int64
	Print semel.Fingerprint
	// Was is the last version before the batch. Was is set for streams that the batch advances.
	Was int64

	first int64 // the version before the first version; Unbegun if any version may be the first
	now   int64 // Last, plus the versions of this batch
	print semel.Fingerprint
}

// Unbegun is the position of a stream that starts with the first version that arrives, as long as none has arrived.
// Redeliveries of messages that were processed before the stream existed do not start the stream.
const Unbegun = -1

// Batch contains the streams of a batch. If no message has a version to check, Batch is nil.
type Batch struct {
	marks []store.Mark
	all   []*Stream // sorted, so that batches lock streams in one order and cannot deadlock
	of    []*Stream // by message; nil if the version is not checked
	next  []bool    // by message: whether the message has the next version of its stream
	came  bool      // End made a row due that should have been blocked
	// uncheckedMarks contains the indexes of the messages that start a stream and whose versions Judge does not
	// check. The field known contains the streams in all by their keys.
	uncheckedMarks []int
	known          map[key]*Stream
}

type key struct {
	scope int64
	name  string
}

// Of returns the streams of a batch, or nil if there are none.
func Of(marks []store.Mark) *Batch {
	var b *Batch
	for i := range marks {
		v := &marks[i].Version
		if v.Number == 0 || !v.Asks && !startsStream(&marks[i]) {
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

// startsStream reports whether the message starts a stream although its version is not checked. A message that starts a
// stream without a check is parked or waits, and later versions must wait for it.
func startsStream(m *store.Mark) bool {
	return !m.Version.Asks && m.Version.Start == 0 && m.Version.Number > 0 && m.Claim.Token == 0
}

func compare(x, y *Stream) int {
	return cmp.Or(cmp.Compare(x.Scope, y.Scope), bytes.Compare(x.Name, y.Name))
}

// All returns the streams of the batch in a fixed order. The store sets Last and Print of those streams that
// are stored.
func (b *Batch) All() []*Stream {
	if b == nil {
		return nil
	}
	return b.all
}

// Judge changes the store's answer for new messages from Fresh to Gap or Stale if their version is not the next
// version. Judge checks the messages in order, and assumes for each message that all earlier messages will be applied.
func (b *Batch) Judge(verdicts []store.Verdict) {
	if b == nil {
		return
	}
	b.begin()
	b.startUnchecked(verdicts)
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
		case n > s.now: // also a discarded message whose predecessor was rolled back
			verdicts[i] = store.Verdict{Kind: store.Gap, Missing: n - s.now - 1}
		case m.As == store.Discarded:
		default:
			verdicts[i] = store.Verdict{Kind: store.Stale, Known: n == s.now && m.Fingerprint.Conflicts(s.print)}
		}
	}
}

// beginAt starts the stream with version n if it has not started.
func (s *Stream) beginAt(n int64) {
	if s.now == Unbegun {
		s.now, s.first = n-1, n-1
	}
}

// startUnchecked starts the streams of fresh messages whose versions Judge does not check (see startsStream). A stream
// starts at the smallest of its unchecked versions in the batch. If a stream started at a later version, that version
// could be applied before an earlier version that waits in the inbox.
func (b *Batch) startUnchecked(verdicts []store.Verdict) {
	for i := range b.marks {
		if verdicts[i].Kind == store.Fresh && startsStream(&b.marks[i]) {
			b.uncheckedMarks = append(b.uncheckedMarks, i)
		}
	}
	slices.SortStableFunc(b.uncheckedMarks, func(i, j int) int { return cmp.Compare(b.marks[i].Version.Number, b.marks[j].Version.Number) })
	for _, i := range b.uncheckedMarks {
		if s := b.known[keyOf(&b.marks[i])]; s != nil {
			s.beginAt(b.marks[i].Version.Number)
		}
	}
}

// Begun returns streams that are not in All and that start with messages of the batch. If a stream of the result is not
// stored yet, the store writes the stream with Last. The parameter trim contains the indexes of messages that are
// rolled back; these messages start no stream.
func (b *Batch) Begun(trim []int) (all []*Stream) {
	if b == nil {
		return nil
	}
	for _, i := range b.uncheckedMarks {
		if m := &b.marks[i]; b.known[keyOf(m)] == nil && !slices.Contains(trim, i) {
			all = append(all, &Stream{Scope: m.Scope, Name: m.Version.Stream, Last: m.Version.Number - 1})
		}
	}
	slices.SortStableFunc(all, compare) // the smallest version of each stream stays the first
	return slices.CompactFunc(all, func(x, y *Stream) bool { return compare(x, y) == 0 })
}

// Received returns the streams that start with messages which are stored without a version check.
func Received(marks []store.Mark, verdicts []store.Verdict) []*Stream {
	b := Of(marks)
	if b != nil {
		b.startUnchecked(verdicts)
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

// End adjusts the ending of a batch to its streams. If a row or claim would be blocked, or parked because of a gap, but
// its version is now the next version, End makes it due instead. End returns the streams that advance, with their new
// Last and Print. A message that is rolled back or unfinished does not advance its stream, and later versions of the
// stream do not advance it either.
func (b *Batch) End(e store.Ending) (store.Ending, []*Stream) {
	if b == nil {
		return e, nil
	}
	b.move(e)
	e.Rows, e.Claims = slices.Clone(e.Rows), slices.Clone(e.Claims)
	for i := range e.Rows {
		if r := &e.Rows[i]; r.State == store.StateBlocked && !r.Repeat && b.isDue(r.Mark) {
			r.State, r.After, r.Reason, b.came = store.StateReceived, 0, "", true
		}
	}
	for i := range e.Claims {
		c := &e.Claims[i]
		waits := c.State == store.StateBlocked || c.State == store.StateParked && c.Reason == semel.ReasonGap
		if waits && b.isDue(c.Mark) {
			if c.State == store.StateParked {
				c.Error = "" // the text says that an earlier version is missing
			}
			c.State, c.After, c.Reason, b.came = store.StateReceived, 0, "", true
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

// Turns returns the versions that are due, or obsolete, after the streams have advanced. For each version,
// places contains the index of its stream in moved, counted from 1, and numbers contains the version.
func Turns(moved []*Stream) (places, numbers []int64) {
	for i, s := range moved {
		for n := s.Was; n <= s.Last; n++ { // no overflow: Last is less than the largest number
			places, numbers = append(places, int64(i+1)), append(numbers, n+1)
		}
	}
	return places, numbers
}

// Came reports whether true if End made a row due that should have been blocked.
func (b *Batch) Came() bool { return b != nil && b.came }

// move advances the streams by the messages that are applied with this ending.
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
		stays[c.Mark] = c.State != store.StateCompleted && c.State != store.StateDiscarded
	}
	for i, s := range b.of {
		if b.next[i] && !stays[i] && b.marks[i].Version.Number == s.now+1 {
			s.now, s.print = s.now+1, b.marks[i].Fingerprint
		}
	}
}

// isDue reports whether the version of a message is at most the next version of its stream.
func (b *Batch) isDue(mark int) bool {
	s := b.of[mark]
	return s != nil && b.marks[mark].Version.Number <= s.now+1
}
