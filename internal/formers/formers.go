// Package formers handles messages with a previous identity, for every store. The package adds the markers of previous
// identities to the markers of a batch. For each message, the package combines the store's two answers (new, duplicate,
// conflict), for its marker and for the marker of its previous identity, into one answer.
package formers

import (
	"slices"

	"github.com/semel-go/semel/store"
)

// Batch contains the previous identities of a batch's messages. Batch is nil if no message has a previous identity. The
// methods of Batch may be called on nil.
type Batch struct {
	asked []store.Mark
	all   []store.Mark // asked, followed by the markers of previous identities
	of    []int        // by index in asked: the index of the previous identity's marker in the slice all, or none
	first []int        // by index in all: the index of an earlier marker with the same identity, or none
	known []bool       // by index in all: whether a conflict row with the same content exists
	back  []int        // indexes in all: markers that the batch wrote and must remove
	place []int        // by index in asked: the index of the marker whose row counts the copies of the message
}

const none = -1

// Of returns the Batch for markers.
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

// findTwice finds markers with the same identity.
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

// Marks returns the markers that the store must write and compare in place of the requested markers (the parameter
// asked).
func (b *Batch) Marks(asked []store.Mark) []store.Mark {
	if b == nil {
		return asked
	}
	return b.all
}

// Rows returns the indexes of the markers for which the store must look for a conflict row and call Knows. The store
// must look for a conflict row if the batch wrote a marker although a marker of the previous identity exists. The
// parameter verdicts contains the store's answers for all markers; Fresh means that the batch wrote the marker.
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

// Knows records whether the conflict row of a marker exists. The store calls Knows once for each key that the
// row may have.
func (b *Batch) Knows(mark int, known bool) { b.known[mark] = b.known[mark] || known }

// isWrittenByBatch reports whether the store's answer v means that the batch wrote the marker.
func isWrittenByBatch(v store.Verdict) bool {
	switch v.Kind {
	case store.Fresh, store.Gap, store.Stale, store.Behind:
		return true
	}
	return false
}

// Judge converts the store's answers for all markers to answers for the original markers of the batch.
func (b *Batch) Judge(all []store.Verdict) []store.Verdict {
	if b == nil {
		return all
	}
	answers := slices.Clone(all[:len(b.asked)])
	for i, f := range b.of {
		switch {
		case f == none:
		case !isWrittenByBatch(all[i]):
			if b.isMarkerOfBatch(all, i) {
				answers[i] = store.Verdict{Kind: store.Busy}
			}
			b.back = append(b.back, f)
		case b.isMarkerOfBatch(all, f):
			answers[i] = store.Verdict{Kind: store.Busy}
			b.back = append(b.back, i)
		case all[f].Kind != store.Fresh:
			answers[i] = b.judgePrevious(i, all[f])
			b.back = append(b.back, i)
		}
	}
	b.back = slices.DeleteFunc(b.back, func(i int) bool { return !isWrittenByBatch(all[i]) })
	return answers
}

// isMarkerOfBatch reports whether the store found only a marker that the same batch wrote for an earlier message. The
// marker of the earlier message may still be removed, so the store's answer proves nothing.
func (b *Batch) isMarkerOfBatch(all []store.Verdict, mark int) bool {
	return b.first[mark] != none && !isWrittenByBatch(all[mark]) && isWrittenByBatch(all[b.first[mark]])
}

// judgePrevious returns the answer (new, duplicate, conflict) for message i, if the marker of its previous identity
// decides about the message.
func (b *Batch) judgePrevious(i int, found store.Verdict) store.Verdict {
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

// Back returns the indexes of the markers that the batch must remove in any case. The indexes refer to the list of all
// markers.
func (b *Batch) Back() []int {
	if b == nil {
		return nil
	}
	return b.back
}

// End returns the ending for all markers, given the ending e for the original markers. End does not change e.
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
