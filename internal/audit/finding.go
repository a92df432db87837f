package audit

import (
	"cmp"
	"fmt"
	"slices"
)

// Kind is what is wrong with a line.
type Kind string

// The kinds.
const (
	// Changed: a line, or the act that it sealed, is not what it was.
	Changed Kind = "changed"
	// Removed: a line, or the act that it sealed, is gone.
	Removed Kind = "removed"
	// Reordered: a line stands at another place than the one at which it was sealed.
	Reordered Kind = "reordered"
	// Inserted: a line was never sealed here.
	Inserted Kind = "inserted"
	// CutOff: lines are gone from the end.
	CutOff Kind = "cut off"
	// Late: an act was sealed, or is not sealed, long after it was done. Until an act is sealed
	// nothing shows what it was.
	Late Kind = "sealed late"
	// Unkeyed: lines before the first one under the key are under none, so that anybody who
	// could write the tables then could have made them.
	Unkeyed Kind = "under no key"
)

// Finding is something that is wrong.
type Finding struct {
	// Sequence is where, and To the last line of several; 0: it is one.
	Sequence int64 `json:"sequence"`
	To       int64 `json:"to,omitempty"`
	// Act is the number of the act, where it is known.
	Act  int64  `json:"act,omitempty"`
	Kind Kind   `json:"kind"`
	What string `json:"what"`
}

func (f Finding) String() string {
	switch {
	case f.To > f.Sequence:
		return fmt.Sprintf("lines %d to %d: %s: %s", f.Sequence, f.To, f.Kind, f.What)
	case f.Act > 0:
		return fmt.Sprintf("line %d, act %d: %s: %s", f.Sequence, f.Act, f.Kind, f.What)
	}
	return fmt.Sprintf("line %d: %s: %s", f.Sequence, f.Kind, f.What)
}

// MostFindings is how many findings are named; the others are counted.
const MostFindings = 1000

// Report is what a verification found.
type Report struct {
	// Lines are how many were looked at, and End the last of them that is not known to be
	// inserted.
	Lines int64
	End   Point
	// Keyed are how many of them are under a key; Unchecked how many of those were not
	// computed, as no key was given.
	Keyed, Unchecked int64
	// Findings are what is wrong, by sequence: the first MostFindings of Total.
	Findings []Finding
	Total    int64
}

func (r *Report) add(f Finding) {
	if r.Total++; len(r.Findings) < MostFindings {
		r.Findings = append(r.Findings, f)
	}
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.Sequence, b.Sequence) })
}
