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
	// Changed means that a line of the audit chain, or the audit record that was copied into the line, was changed.
	Changed Kind = "changed"
	// Removed means that a line of the audit chain, or the audit record that was copied into the line, was removed.
	Removed Kind = "removed"
	// Reordered means that a line of the audit chain was moved to another position.
	Reordered Kind = "reordered"
	// Inserted means that a line of the audit chain was inserted by a forger.
	Inserted Kind = "inserted"
	// CutOff means that lines are missing at the end of the audit chain.
	CutOff Kind = "cut off"
	// Late means that an audit record was added to the audit chain long after it was written, or is still missing
	// there. A change of an audit record before it was added to the chain cannot be detected.
	Late Kind = "sealed late"
	// Unkeyed means that lines without a key come before the first keyed line of the audit chain. Lines without a key
	// may be forged: anybody who could write the tables could have written them.
	Unkeyed Kind = "under no key"
)

// Finding is one fault that the verification found.
type Finding struct {
	// Sequence is the sequence of the audit line, or of the first of several lines. For several lines, To is the
	// sequence of the last line; for a single line, To is 0.
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
	// Lines is the number of audit lines that were read. End is the last line, without lines that a forger has
	// inserted.
	Lines int64
	End   Point
	// Keyed is the number of audit lines with a key. Unchecked is the number of keyed lines whose hash was not checked
	// because no key was given.
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
