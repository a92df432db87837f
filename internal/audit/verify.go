package audit

import (
	"fmt"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Line is a line to verify. If its audit record must be compared too, Now is that record.
type Line struct {
	admin.Seal
	// Compared reports that Now was read from the table of audit records. If Compared is set and Now is nil,
	// the record is missing in that table.
	Compared bool
	Now      *store.Act
}

// Verifier verifies a chain line by line, in the order in which the lines are stored. The memory that a
// Verifier uses does not depend on the length of the chain.
type Verifier struct {
	key    []byte
	heads  []*known
	ends   []namedEnd
	report Report

	// next is the highest sequence so far plus one. tip is the line with that highest sequence.
	next    int64
	tip     *tip
	missing []span // sequences that were skipped and have not been seen later
	shifted run
	keyed   bool  // true after a keyed line
	unkeyed int64 // sequence of the last line before the first keyed line
	late    []lateLines
	held    *Line // the last added line; it is judged together with the next line
}

// known is an expected line of the chain, with the hash of the line that has its sequence.
type known struct {
	Point
	name string // the name of the line in findings
	kept bool   // the line was kept outside of the store
	met  *admin.SealHash
}

// tip is the line with the highest sequence. The next line may show that tip is wrong.
type tip struct {
	admin.Seal
	stands int64
	// wrong describes the fault of the line. It is empty if no fault was found.
	wrong string
	// others are further lines that were sealed with the same sequence.
	others []tip
}

// mostOthers is the maximum number of lines with one sequence that are kept until the next line shows which
// of them is right.
const mostOthers = 16

// span is a range of sequences, including both ends.
type span struct{ from, to int64 }

// run is a range of consecutive lines. The current sequence of each line differs by the same number from the
// sequence with which the line was sealed.
type run struct{ from, to, by int64 }

// NewVerifier returns a verifier. Without a key, the verifier does not check hashes and proofs that need a
// key.
func NewVerifier(key []byte) *Verifier { return &Verifier{key: key, next: 1} }

// Expect makes the verifier check that the chain contains p. Findings call the point by name. p was kept
// outside of the store, so late and unkeyed lines up to p are not reported: these lines existed already when
// p was noted.
func (v *Verifier) Expect(p Point, name string) { v.expect(p, name, true) }

func (v *Verifier) expect(p Point, name string, kept bool) {
	if p.Sequence > 0 {
		v.heads = append(v.heads, &known{Point: p, name: name, kept: kept})
	}
}

// Add verifies the next line.
func (v *Verifier) Add(l Line) {
	v.report.Lines++
	if v.held != nil {
		v.judge(*v.held, &l)
	}
	v.held = &l
}

// End returns the report. Add must not be called after End.
func (v *Verifier) End() Report {
	if v.held != nil {
		v.judge(*v.held, nil)
		v.held = nil
	}
	for _, h := range v.heads {
		if v.tip != nil && h.Sequence == v.tip.Sequence {
			v.tip.prefer(h.Hash)
		}
	}
	v.endTip()
	v.endRun()
	for _, m := range v.missing {
		v.report.add(m.removed())
	}
	for _, h := range v.heads {
		v.reach(h)
	}
	for _, e := range v.ends {
		v.atEnd(e)
	}
	if len(v.key) > 0 && v.report.Keyed == 0 && v.next > 1 {
		v.report.add(Finding{Sequence: v.next - 1, Kind: Changed, What: "no line up to here is under the key, so that anybody could have made them"})
	}
	v.endLate()
	v.report.sort()
	return v.report
}

// reach reports a chain that ends before an expected line, or whose line at that sequence has another hash.
func (v *Verifier) reach(h *known) {
	switch {
	case h.Sequence >= v.next:
		v.report.add(Finding{Sequence: v.next, To: h.Sequence, Kind: CutOff, What: fmt.Sprintf("the lines end before %s, which is line %d", h.name, h.Sequence)})
	case h.met == nil || *h.met != h.Hash:
		v.report.add(Finding{Sequence: h.Sequence, Kind: Changed,
			What: fmt.Sprintf("its hash is not that of %s: this line or an earlier one was changed, and all hashes after it were computed again", h.name)})
	}
}

// judge reports the faults of a line. behind is the following line, or nil if l is the last line.
func (v *Verifier) judge(l Line, behind *Line) {
	sealed, intact := v.sealedAs(l.Seal)
	if l.Keyed {
		v.report.Keyed++
	}
	if !intact {
		v.broken(l, behind)
		return
	}
	v.compare(l, sealed)
	v.noteKey(l.Seal, sealed)
	v.noteLate(l.Seal, sealed)
	at := tip{Seal: l.Seal, stands: l.Sequence}
	at.Sequence = sealed
	if sealed < v.next && v.found(sealed) {
		v.meet(at.Seal)
		v.report.add(Finding{Sequence: sealed, Act: l.Act.Number, Kind: Reordered, What: fmt.Sprintf("it comes after line %d", v.next-1)})
		return
	}
	v.noteShift(l.Sequence, sealed)
	switch {
	case sealed >= v.next:
		v.accept(at)
	case v.tip != nil && sealed == v.tip.Sequence && len(v.tip.others) < mostOthers:
		v.tip.others = append(v.tip.others, at)
	default:
		v.report.add(Finding{Sequence: l.Sequence, Act: l.Act.Number, Kind: Inserted, What: fmt.Sprintf("line %d exists already; this is a second one", sealed)})
	}
}

// accept makes a line the new tip. The link of the line to the previous line shows whether the old tip was
// right.
func (v *Verifier) accept(at tip) {
	switch {
	case at.Sequence > v.next:
		v.miss(span{v.next, at.Sequence - 1})
	case v.tip != nil:
		v.tip.prefer(at.Previous)
		if v.tip.Hash != at.Previous && v.tip.wrong == "" {
			v.tip.wrong = fmt.Sprintf("line %d follows another one: its content was changed, and its hash was computed again", at.Sequence)
		}
	case at.Previous != (admin.SealHash{}):
		v.report.add(Finding{Sequence: 1, Act: at.Act.Number, Kind: Changed, What: "it is the first line, but links to a line before it"})
	}
	v.endTip()
	v.tip, v.next = &at, at.Sequence+1
}

// prefer replaces the tip by a line with this hash, if such a line was sealed with the same sequence.
func (t *tip) prefer(hash admin.SealHash) {
	for i, other := range t.others {
		if other.Hash != hash || t.Hash == hash {
			continue
		}
		first, others := *t, t.others
		first.others, others[i] = nil, first
		*t, t.others = other, others
		others[i].others = nil
		return
	}
}

// endTip reports the faults of the tip and of other lines with its sequence. Then there is no tip.
func (v *Verifier) endTip() {
	t := v.tip
	if t == nil {
		return
	}
	v.meet(t.Seal)
	if t.wrong != "" {
		v.report.add(Finding{Sequence: t.Sequence, Act: t.Act.Number, Kind: Changed, What: t.wrong})
	}
	for _, other := range t.others {
		v.report.add(Finding{Sequence: other.stands, Act: other.Act.Number, Kind: Inserted, What: fmt.Sprintf("line %d is probably another one", t.Sequence)})
	}
	v.report.End, v.tip = Point{t.Sequence, t.Hash}, nil
}

// miss records skipped sequences. If there are many, the oldest are reported, so that memory is limited.
func (v *Verifier) miss(m span) {
	if v.missing = append(v.missing, m); len(v.missing) > MostFindings {
		v.report.add(v.missing[0].removed())
		v.missing = v.missing[1:]
	}
}

func (s span) removed() Finding {
	return Finding{Sequence: s.from, To: s.to, Kind: Removed, What: "there is no line"}
}

// meet records the hash of a line for each point that is expected at the sequence of the line.
func (v *Verifier) meet(s admin.Seal) {
	for _, h := range v.heads {
		if h.Sequence == s.Sequence {
			hash := s.Hash
			h.met = &hash
		}
	}
}

// found reports whether the sequence was missing, and removes it from the missing sequences.
func (v *Verifier) found(sequence int64) bool {
	for i, m := range v.missing {
		if sequence < m.from || sequence > m.to {
			continue
		}
		rest := make([]span, 0, len(v.missing)+1)
		rest = append(rest, v.missing[:i]...)
		if m.from < sequence {
			rest = append(rest, span{m.from, sequence - 1})
		}
		if sequence < m.to {
			rest = append(rest, span{sequence + 1, m.to})
		}
		v.missing = append(rest, v.missing[i+1:]...)
		return true
	}
	return false
}
