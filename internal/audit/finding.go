package audit

import (
	"cmp"
	"fmt"
	"slices"
)

// Kind classifies a finding.
type Kind string

// The kinds of findings.
const (
	// Changed means that a line, or the audit record that the line sealed, was changed.
	Changed Kind = "changed"
	// Removed means that a line, or the audit record that the line sealed, was removed.
	Removed Kind = "removed"
	// Reordered means that a line is at another place than the place where it was sealed.
	Reordered Kind = "reordered"
	// Inserted means that a line was not sealed at this place.
	Inserted Kind = "inserted"
	// CutOff means that lines are missing at the end.
	CutOff Kind = "cut off"
	// Late means that an audit record was sealed long after it was written, or is still not sealed. If the
	// record was changed before it was sealed, the change cannot be detected.
	Late Kind = "sealed late"
	// Unkeyed means lines before the first keyed line. Anybody who could write the tables at that time could
	// have written these lines.
	Unkeyed Kind = "under no key"
)

// Finding is one fault that the verification found.
type Finding struct {
	// Sequence is the sequence of the line, or of the first of several lines. For several lines, To is the
	// sequence of the last line. Otherwise To is 0.
	Sequence int64 `json:"sequence"`
	To       int64 `json:"to,omitempty"`
	// Act is the number of the audit record, or 0 if the number is unknown.
	Act  int64  `json:"act,omitempty"`
	Kind Kind   `json:"kind"`
	What string `json:"what"`
}

func (f Finding) String() string {
	switch {
	case f.To > f.Sequence:
		return fmt.Sprintf("lines %d to %d: %s: %s", f.Sequence, f.To, f.Kind, f.What)
	case f.Act > 0:
		return fmt.Sprintf("line %d, change %d: %s: %s", f.Sequence, f.Act, f.Kind, f.What)
	}
	return fmt.Sprintf("line %d: %s: %s", f.Sequence, f.Kind, f.What)
}

// MostFindings is the maximum number of findings that a report lists. Total is the number of all findings.
const MostFindings = 1000

// Report is the result of a verification.
type Report struct {
	// Lines is the number of lines that were read. End is the last line that was not found to be inserted.
	Lines int64
	End   Point
	// Keyed is the number of lines with a key. Unchecked is the number of keyed lines whose hash was not
	// checked because no key was given.
	Keyed, Unchecked int64
	// Findings contains the first MostFindings of all findings, sorted by sequence.
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
