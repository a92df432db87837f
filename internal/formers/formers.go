// Package formers marks messages under a former identity beside their own, the same for
// every store. A store marks and judges all that it is given here as it does any marks,
// and is told what that means for the marks that it was asked for.
package formers

import (
	"slices"

	"github.com/semel-go/semel/store"
)

// Batch is what a batch knows of its marks' former identities; nil where none has one.
// Its methods may be called on nil.
type Batch struct {
	asked []store.Mark
	all   []store.Mark // those that were asked for, and then the former ones
	of    []int        // by mark that was asked for: its former one among all, or none
	first []int        // by mark: an earlier one of the same identity, or none
	known []bool       // by mark: a row of a conflict of its content is there
	back  []int        // among all: what is taken back of what the batch wrote
	place []int        // by mark: on whose row its copies are counted
}

const none = -1

// Of finds the former identities of marks.
func Of(marks []store.Mark) *Batch {
	if !slices.ContainsFunc(marks, func(m store.Mark) bool { return m.Previous != nil }) {
		return nil
	}
	b := &Batch{asked: marks, all: slices.Clone(marks), of: make([]int, len(marks)), place: make([]int, len(marks))}
	for i := range marks {
		b.of[i], b.place[i] = none, i
		if f := marks[i].Previous; f != nil && marks[i].Claim.Token == 0 {
			b.of[i] = len(b.all)
			b.all = append(b.all, store.Mark{Scope: f.Scope, ID: f.ID, Fingerprint: marks[i].Fingerprint, As: marks[i].As, Strict: f.Strict})
		}
	}
	b.known = make([]bool, len(b.all))
	b.findTwice()
	return b
}

type identity struct {
	scope int64
	id    string
}

// findTwice finds the marks of one identity.
func (b *Batch) findTwice() {
	met := make(map[identity]int, len(b.all))
	b.first = make([]int, len(b.all))
	for i := range b.all {
		b.first[i] = none
		if b.all[i].Claim.Token != 0 {
			continue
		}
		id := identity{b.all[i].Scope, string(b.all[i].ID)}
		if first, twice := met[id]; twice {
			b.first[i] = first
		} else {
			met[id] = i
		}
	}
}

// Marks are what is to be marked and judged where these were asked for.
func (b *Batch) Marks(asked []store.Mark) []store.Mark {
	if b == nil {
		return asked
	}
	return b.all
}

// Rows are the marks that the batch wrote and of which the store has to be asked
// nevertheless whether a row of a conflict of their content is there; see Knows. verdicts
// are of all marks, and Fresh where the batch wrote them.
func (b *Batch) Rows(verdicts []store.Verdict) (ask []int) {
	if b == nil {
		return nil
	}
	for i, f := range b.of {
		if f != none && verdicts[i].Kind == store.Fresh && verdicts[f].Kind != store.Fresh {
			ask = append(ask, i)
		}
	}
	return ask
}

// Knows is told what became of that, once for each key that the row may have.
func (b *Batch) Knows(mark int, known bool) { b.known[mark] = b.known[mark] || known }

// written reports whether a verdict says that the batch wrote its mark.
func written(v store.Verdict) bool {
	switch v.Kind {
	case store.Fresh, store.Gap, store.Stale, store.Behind:
		return true
	}
	return false
}

// Judge answers the marks that were asked for, by the verdicts on all.
func (b *Batch) Judge(all []store.Verdict) []store.Verdict {
	if b == nil {
		return all
	}
	answers := slices.Clone(all[:len(b.asked)])
	for i, f := range b.of {
		switch {
		case f == none:
		case !written(all[i]):
			if b.met(all, i) {
				answers[i] = store.Verdict{Kind: store.Busy}
			}
			b.back = append(b.back, f)
		case b.met(all, f):
			answers[i] = store.Verdict{Kind: store.Busy}
			b.back = append(b.back, i)
		case all[f].Kind != store.Fresh:
			answers[i] = b.former(i, all[f])
			b.back = append(b.back, i)
		}
	}
	b.back = slices.DeleteFunc(b.back, func(i int) bool { return !written(all[i]) })
	return answers
}

// met reports whether what a mark met is only what the batch itself wrote for an earlier
// one, which may be taken back yet: nothing follows from it.
func (b *Batch) met(all []store.Verdict, mark int) bool {
	return b.first[mark] != none && !written(all[mark]) && written(all[b.first[mark]])
}

// former is the answer to mark i where its former identity decides.
func (b *Batch) former(i int, found store.Verdict) store.Verdict {
	found.Former = true
	switch found.Kind {
	case store.Seen:
		b.place[i] = b.of[i]
	case store.Conflict:
		if found.Known && !b.known[i] {
			b.place[i] = b.of[i]
		}
		found.Known = found.Known || b.known[i]
	}
	return found
}

// Back are the marks, among all, that are taken back whatever else becomes of the batch.
func (b *Batch) Back() []int {
	if b == nil {
		return nil
	}
	return b.back
}

// End is the ending as it is of all marks. The one that is given stays as it is.
func (b *Batch) End(e store.Ending) store.Ending {
	if b == nil {
		return e
	}
	trim := slices.Concat(e.Trim, b.back)
	for _, i := range e.Trim {
		if f := b.of[i]; f != none {
			trim = append(trim, f)
		}
	}
	slices.Sort(trim)
	e.Trim, e.Rows = slices.Compact(trim), slices.Clone(e.Rows)
	for i := range e.Rows {
		if r := &e.Rows[i]; r.Repeat {
			r.Mark = b.place[r.Mark]
		}
	}
	return e
}
