package audit

import (
	"fmt"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Line is a line to verify: as it stands, with its act where that is compared.
type Line struct {
	admin.Seal
	// Compared: Now is what stands in the table of acts; nil: nothing of this number does.
	Compared bool
	Now      *store.Act
}

// Verifier reads a chain line by line, in the order in which it stands. It keeps a few lines
// in memory, whatever there are.
type Verifier struct {
	key    []byte
	heads  []*known
	ends   []namedEnd
	report Report

	// next is the sequence that comes after the highest so far, and tip what stands there.
	next    int64
	tip     *tip
	missing []span // sequences that were passed over and not met yet
	shifted run
	keyed   bool  // a line under a key was met
	unkeyed int64 // the last line without a key before the first with one
	late    []lateLines
	held    *Line // the last that was added: it is judged with the one behind it
}

// known is an end that is known, with what was met at its place.
type known struct {
	Point
	name string // what it is, for people
	kept bool   // somebody kept it elsewhere
	met  *admin.SealHash
}

// tip is the line at the highest sequence, which the next one may show to be a wrong one.
type tip struct {
	admin.Seal
	stands int64
	// wrong says what is wrong with it already, empty for nothing.
	wrong string
	// others are lines that were sealed at the same place.
	others []tip
}

// mostOthers is how many lines at one place are kept until the next one tells which is right.
const mostOthers = 16

// span are sequences from one to another.
type span struct{ from, to int64 }

// run are lines one behind the other that stand so far from where they were sealed.
type run struct{ from, to, by int64 }

// NewVerifier verifies with a key, without one only what needs none.
func NewVerifier(key []byte) *Verifier { return &Verifier{key: key, next: 1} }

// Expect has the chain reach to this place, and be there what it was; name says for people
// who kept it. It was kept elsewhere: what was sealed late or under no key before it is no
// finding, as somebody has looked at that then.
func (v *Verifier) Expect(p Point, name string) { v.expect(p, name, true) }

func (v *Verifier) expect(p Point, name string, kept bool) {
	if p.Sequence > 0 {
		v.heads = append(v.heads, &known{Point: p, name: name, kept: kept})
	}
}

// Add reads the next line.
func (v *Verifier) Add(l Line) {
	v.report.Lines++
	if v.held != nil {
		v.judge(*v.held, &l)
	}
	v.held = &l
}

// End says what was found; nothing may be added behind it.
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

// reach holds the chain to an end that is known.
func (v *Verifier) reach(h *known) {
	switch {
	case h.Sequence >= v.next:
		v.report.add(Finding{Sequence: v.next, To: h.Sequence, Kind: CutOff, What: fmt.Sprintf("the lines end before %s, which is line %d", h.name, h.Sequence)})
	case h.met == nil || *h.met != h.Hash:
		v.report.add(Finding{Sequence: h.Sequence, Kind: Changed,
			What: fmt.Sprintf("its hash is not that of %s: this line, or one before it, was made anew with all behind it", h.name)})
	}
}

// judge says what is wrong with a line; behind is the one that stands behind it.
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
		v.report.add(Finding{Sequence: sealed, Act: l.Act.Number, Kind: Reordered, What: fmt.Sprintf("it stands behind line %d", v.next-1)})
		return
	}
	v.noteShift(l.Sequence, sealed)
	switch {
	case sealed >= v.next:
		v.accept(at)
	case v.tip != nil && sealed == v.tip.Sequence && len(v.tip.others) < mostOthers:
		v.tip.others = append(v.tip.others, at)
	default:
		v.report.add(Finding{Sequence: l.Sequence, Act: l.Act.Number, Kind: Inserted, What: fmt.Sprintf("line %d was there before: this is a second one", sealed)})
	}
}

// accept takes a line as the one at the highest sequence. What it says that it follows
// ends the one before.
func (v *Verifier) accept(at tip) {
	switch {
	case at.Sequence > v.next:
		v.miss(span{v.next, at.Sequence - 1})
	case v.tip != nil:
		v.tip.prefer(at.Previous)
		if v.tip.Hash != at.Previous && v.tip.wrong == "" {
			v.tip.wrong = fmt.Sprintf("line %d follows another one: its content is not what was sealed, and its hash was computed anew", at.Sequence)
		}
	case at.Previous != (admin.SealHash{}):
		v.report.add(Finding{Sequence: 1, Act: at.Act.Number, Kind: Changed, What: "it says that it follows another line, and is the first"})
	}
	v.endTip()
	v.tip, v.next = &at, at.Sequence+1
}

// prefer takes the line of this hash for the right one of those at the same place.
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

// endTip reports the line at the highest sequence, and those that were sealed there, too.
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
		v.report.add(Finding{Sequence: other.stands, Act: other.Act.Number, Kind: Inserted, What: fmt.Sprintf("line %d is another one, as far as can be told", t.Sequence)})
	}
	v.report.End, v.tip = Point{t.Sequence, t.Hash}, nil
}

// miss notes lines that were passed over. Of very many the first are reported at once.
func (v *Verifier) miss(m span) {
	if v.missing = append(v.missing, m); len(v.missing) > MostFindings {
		v.report.add(v.missing[0].removed())
		v.missing = v.missing[1:]
	}
}

func (s span) removed() Finding {
	return Finding{Sequence: s.from, To: s.to, Kind: Removed, What: "no line stands there"}
}

// meet notes the hash at the place of an end that is known.
func (v *Verifier) meet(s admin.Seal) {
	for _, h := range v.heads {
		if h.Sequence == s.Sequence {
			hash := s.Hash
			h.met = &hash
		}
	}
}

// found reports whether a line was missing, which it is no more.
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
