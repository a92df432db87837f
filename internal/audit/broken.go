package audit

import (
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// farthest is the maximum difference between current and original sequence of a line up to which sealedAs finds the
// original.
const farthest = 1000

// sealedAs returns the sequence that the line of the audit chain had when it was written. If the line was renumbered,
// its current sequence differs. The result intact is false if the hash of the line does not match its content with any
// sequence nearby. If the line is keyed and the verifier has no key, the line counts as intact.
func (v *Verifier) sealedAs(s admin.Seal) (sequence int64, intact bool) {
	if s.Keyed && len(v.key) == 0 {
		v.report.Unchecked++
		return s.Sequence, true
	}
	at := func(sequence int64) bool {
		if sequence < 1 {
			return false
		}
		moved := s
		moved.Sequence = sequence
		return Hash(v.key, moved) == s.Hash
	}
	if at(s.Sequence) {
		return s.Sequence, true
	}
	if by := v.shifted.by; at(s.Sequence - by) {
		return s.Sequence - by, true
	}
	for by := int64(1); by <= farthest && v.report.Total < MostFindings; by++ {
		for _, place := range []int64{s.Sequence + by, s.Sequence - by} {
			if at(place) {
				return place, true
			}
		}
	}
	return 0, false
}

// reportBrokenLine reports a line whose hash does not match its content. The parameter following is the next line of
// the chain, or nil if l is the last line.
func (v *Verifier) reportBrokenLine(l Line, following *Line) {
	at := tip{Seal: l.Seal, stands: l.Sequence}
	at.Sequence -= v.shifted.by
	var before admin.SealHash
	if v.lastLine != nil {
		before = v.lastLine.Hash
	}
	follows, followed := l.Previous == before, following != nil && following.Previous == l.Hash
	at.wrong = v.whatChanged(l, before)
	if at.wrong == otherLink {
		at.Previous = before
	}
	switch {
	case at.Sequence >= v.nextSequence && (follows || followed):
		v.accept(at)
	case v.lastLine != nil && at.Sequence == v.lastLine.Sequence && followed && len(v.lastLine.others) < mostOthers:
		v.lastLine.others = append(v.lastLine.others, at)
	case (follows || followed) && v.removeMissing(at.Sequence):
		v.recordHash(at.Seal)
		v.report.add(Finding{Sequence: at.Sequence, Act: l.Act.Number, Kind: Changed, What: at.wrong})
	default:
		v.report.add(Finding{Sequence: l.Sequence, Act: l.Act.Number, Kind: Inserted, What: "its hash is not that of its content, and no line beside it is one of its neighbours"})
	}
}

// otherLink is the text of a finding. Each line contains the hash of the previous line; in the line of this finding,
// that hash was changed.
const otherLink = "the hash of the line before it is not what was sealed"

// whatChanged returns the name of the part of an audit line that was changed, if the part can be determined.
func (v *Verifier) whatChanged(l Line, before admin.SealHash) string {
	fits := func(change func(*admin.Seal)) bool {
		s := l.Seal
		change(&s)
		return Hash(v.key, s) == l.Hash
	}
	switch {
	case fits(func(s *admin.Seal) { s.Previous = before }):
		return otherLink
	case l.Now != nil && fits(func(s *admin.Seal) { s.Act = *l.Now }):
		return "the line: " + differences(*l.Now, l.Act) + "; the table of changes still has what was sealed"
	case !l.Keyed && len(v.key) > 0 && fits(func(s *admin.Seal) { s.Keyed = true }):
		return "the line was sealed under the key, and its keyed mark was removed"
	}
	return "its content or its hash was changed"
}

// compare reports an audit record that is missing in its table, or that differs from its copy in the audit chain.
func (v *Verifier) compare(l Line, sequence int64) {
	switch {
	case !l.Compared:
	case l.Now == nil:
		v.report.add(Finding{Sequence: sequence, Act: l.Act.Number, Kind: Removed,
			What: fmt.Sprintf("the table of changes no longer has it; it was %q by %q at %s", l.Act.Verb, l.Act.Who, l.Act.At.UTC().Format(time.RFC3339))})
	case *l.Now != l.Act:
		if what := differences(l.Act, *l.Now); what != "" {
			v.report.add(Finding{Sequence: sequence, Act: l.Act.Number, Kind: Changed, What: "in the table of changes: " + what})
		}
	}
}

// longestShown is the maximum number of characters of a text in a finding.
const longestShown = 60

// differences lists the fields in which the current audit record differs from its copy in the audit chain. If all
// fields are equal, the result is empty.
func differences(sealed, current store.Act) string {
	var all []string
	for _, part := range []struct{ name, sealed, current string }{
		{"number", fmt.Sprint(sealed.Number), fmt.Sprint(current.Number)},
		{"row", fmt.Sprint(sealed.Row), fmt.Sprint(current.Row)},
		{"verb", sealed.Verb, current.Verb}, {"who", sealed.Who, current.Who}, {"why", sealed.Why, current.Why}, {"result", sealed.Result, current.Result},
		{"at", sealed.At.UTC().Format(time.RFC3339Nano), current.At.UTC().Format(time.RFC3339Nano)},
	} {
		if part.sealed != part.current {
			all = append(all, fmt.Sprintf("%s was sealed as %.*q and is %.*q", part.name, longestShown, part.sealed, longestShown, part.current))
		}
	}
	return strings.Join(all, ", ")
}

// noteKey reports an audit line without a key after lines with a key. The method also records where the first keyed
// line is.
func (v *Verifier) noteKey(s admin.Seal, sequence int64) {
	if v.keyed && !s.Keyed {
		v.report.add(Finding{Sequence: sequence, Act: s.Act.Number, Kind: Inserted, What: "it is under no key, and lines before it are under one"})
	}
	v.keyed = v.keyed || s.Keyed
	if !v.keyed {
		v.unkeyed = max(v.unkeyed, sequence)
	}
}

// noteShift records that the sequence of an audit line is not the sequence that the line had when it was written.
// Neighbouring lines with the same difference are reported together.
func (v *Verifier) noteShift(current, sealed int64) {
	if by := current - sealed; by != v.shifted.by || v.shifted.to != current-1 {
		v.endRun()
		v.shifted = run{current, current, by}
	}
	v.shifted.to = current
}

func (v *Verifier) endRun() {
	r := v.shifted
	if r.by == 0 || r.to == 0 {
		return
	}
	f := Finding{Sequence: r.from, Kind: Reordered, What: fmt.Sprintf("it was sealed as line %d", r.from-r.by)}
	if r.to > r.from {
		f.To, f.What = r.to, fmt.Sprintf("they were sealed as lines %d to %d", r.from-r.by, r.to-r.by)
	}
	v.report.add(f)
}
