package audit

import (
	"fmt"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Line is a line of the audit chain to verify. If the audit record itself must be compared with its copy in the line,
// Now is that record.
type Line struct {
	admin.Seal
	// Compared reports that Now was read from the table of audit records. If Compared is set and Now is nil, the record
	// is missing in the table of audit records.
	Compared bool
	Now      *store.Act
}

// Verifier verifies an audit chain line by line, in the order in which the lines are stored. The memory that a Verifier
// uses does not depend on the length of the chain.
type Verifier struct {
	key           []byte
	requiredLines []*requiredLine
	ends          []namedEnd
	report        Report

	// nextSequence is the highest sequence so far plus one. lastLine is the line with that highest sequence.
	nextSequence int64
	lastLine     *tip
	missing      []span // sequences that were skipped and have not been seen later
	shifted      run
	keyed        bool  // true after a keyed line
	unkeyed      int64 // sequence of the last line before the first keyed line
	late         []lateLines
	held         *Line // the last added line; it is verified together with the next line
}

// requiredLine is a line that the audit chain must contain, with the hash of the line that the chain has at that
// sequence.
type requiredLine struct {
	Point
	name string // the name of the line in findings
	kept bool   // the line was saved outside of the store
	met  *admin.SealHash
}

// tip is the line with the highest sequence so far. The next line may show that the tip is forged.
type tip struct {
	admin.Seal
	stands int64
	// wrong describes the fault of the line, or is "" if no fault was found.
	wrong string
	// others contains further lines that were written with the same sequence.
	others []tip
}

// mostOthers is the maximum number of lines with the same sequence that the verifier remembers until the next line
// shows which line is genuine.
const mostOthers = 16

// span is a range of sequences, including both ends.
type span struct{ from, to int64 }

// run is a range of consecutive audit lines whose sequences were all changed by the same number.
type run struct{ from, to, by int64 }

// NewVerifier returns a verifier. Without a key, the verifier does not check hashes and proofs that need a
// key.
func NewVerifier(key []byte) *Verifier { return &Verifier{key: key, nextSequence: 1} }

// Expect makes the verifier check that the audit chain contains the line p. Findings refer to p by name. The point p
// was saved outside of the store, so late and unkeyed lines up to p are not reported, because they existed already when
// p was saved.
func (v *Verifier) Expect(p Point, name string) { v.expect(p, name, true) }

func (v *Verifier) expect(p Point, name string, kept bool) {
	if p.Sequence > 0 {
		v.requiredLines = append(v.requiredLines, &requiredLine{Point: p, name: name, kept: kept})
	}
}

// Add verifies the next line of the audit chain.
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
	for _, h := range v.requiredLines {
		if v.lastLine != nil && h.Sequence == v.lastLine.Sequence {
			v.lastLine.replaceIfHash(h.Hash)
		}
	}
	v.endTip()
	v.endRun()
	for _, m := range v.missing {
		v.report.add(m.removed())
	}
	for _, h := range v.requiredLines {
		v.checkRequiredLine(h)
	}
	for _, e := range v.ends {
		v.atEnd(e)
	}
	if len(v.key) > 0 && v.report.Keyed == 0 && v.nextSequence > 1 {
		v.report.add(Finding{Sequence: v.nextSequence - 1, Kind: Changed, What: "no line up to here is under the key, so that anybody could have made them"})
	}
	v.endLate()
	v.report.sort()
	return v.report
}

// checkRequiredLine reports an audit chain that ends before the required line h, or in which the line with the same
// sequence as h has a different hash.
func (v *Verifier) checkRequiredLine(h *requiredLine) {
	switch {
	case h.Sequence >= v.nextSequence:
		v.report.add(Finding{Sequence: v.nextSequence, To: h.Sequence, Kind: CutOff, What: fmt.Sprintf("the lines end before %s, which is line %d", h.name, h.Sequence)})
	case h.met == nil || *h.met != h.Hash:
		v.report.add(Finding{Sequence: h.Sequence, Kind: Changed,
			What: fmt.Sprintf("its hash is not that of %s: this line or an earlier one was changed, and all hashes after it were computed again", h.name)})
	}
}

// judge reports the faults of a line. The parameter following is the next line of the chain, or nil if l is the last
// line.
func (v *Verifier) judge(l Line, following *Line) {
	sealed, intact := v.sealedAs(l.Seal)
	if l.Keyed {
		v.report.Keyed++
	}
	if !intact {
		v.reportBrokenLine(l, following)
		return
	}
	v.compare(l, sealed)
	v.noteKey(l.Seal, sealed)
	v.noteLate(l.Seal, sealed)
	at := tip{Seal: l.Seal, stands: l.Sequence}
	at.Sequence = sealed
	if sealed < v.nextSequence && v.removeMissing(sealed) {
		v.recordHash(at.Seal)
		v.report.add(Finding{Sequence: sealed, Act: l.Act.Number, Kind: Reordered, What: fmt.Sprintf("it comes after line %d", v.nextSequence-1)})
		return
	}
	v.noteShift(l.Sequence, sealed)
	switch {
	case sealed >= v.nextSequence:
		v.accept(at)
	case v.lastLine != nil && sealed == v.lastLine.Sequence && len(v.lastLine.others) < mostOthers:
		v.lastLine.others = append(v.lastLine.others, at)
	default:
		v.report.add(Finding{Sequence: l.Sequence, Act: l.Act.Number, Kind: Inserted, What: fmt.Sprintf("line %d exists already; this is a second one", sealed)})
	}
}

// accept makes a verified line the new tip (the line with the highest sequence). The new line contains the hash of the
// previous line, which shows whether the old tip was genuine.
func (v *Verifier) accept(at tip) {
	switch {
	case at.Sequence > v.nextSequence:
		v.addMissing(span{v.nextSequence, at.Sequence - 1})
	case v.lastLine != nil:
		v.lastLine.replaceIfHash(at.Previous)
		if v.lastLine.Hash != at.Previous && v.lastLine.wrong == "" {
			v.lastLine.wrong = fmt.Sprintf("line %d follows another one: its content was changed, and its hash was computed again", at.Sequence)
		}
	case at.Previous != (admin.SealHash{}):
		v.report.add(Finding{Sequence: 1, Act: at.Act.Number, Kind: Changed, What: "it is the first line, but links to a line before it"})
	}
	v.endTip()
	v.lastLine, v.nextSequence = &at, at.Sequence+1
}

// replaceIfHash replaces the tip by another line with the same sequence, if that line has the given hash.
func (t *tip) replaceIfHash(hash admin.SealHash) {
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

// endTip reports the faults of the tip (the line with the highest sequence) and of other lines with the same sequence,
// and removes the tip.
func (v *Verifier) endTip() {
	t := v.lastLine
	if t == nil {
		return
	}
	v.recordHash(t.Seal)
	if t.wrong != "" {
		v.report.add(Finding{Sequence: t.Sequence, Act: t.Act.Number, Kind: Changed, What: t.wrong})
	}
	for _, other := range t.others {
		v.report.add(Finding{Sequence: other.stands, Act: other.Act.Number, Kind: Inserted, What: fmt.Sprintf("line %d is probably another one", t.Sequence)})
	}
	v.report.End, v.lastLine = Point{t.Sequence, t.Hash}, nil
}

// addMissing records skipped sequences. If too many are recorded, addMissing reports and removes the oldest, so that
// memory is limited.
func (v *Verifier) addMissing(m span) {
	if v.missing = append(v.missing, m); len(v.missing) > MostFindings {
		v.report.add(v.missing[0].removed())
		v.missing = v.missing[1:]
	}
}

func (s span) removed() Finding {
	return Finding{Sequence: s.from, To: s.to, Kind: Removed, What: "there is no line"}
}

// recordHash records the hash of a line for each point that is expected to have the same sequence.
func (v *Verifier) recordHash(s admin.Seal) {
	for _, h := range v.requiredLines {
		if h.Sequence == s.Sequence {
			hash := s.Hash
			h.met = &hash
		}
	}
}

// removeMissing reports whether the sequence was missing, and removes the sequence from the missing sequences.
func (v *Verifier) removeMissing(sequence int64) bool {
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
