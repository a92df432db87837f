package audit

import (
	"fmt"

	"github.com/semel-go/semel/internal/admin"
)

// ExpectEnd makes the verifier check that the last line of the chain is the line that the parameter end describes. The
// description was recorded in a store or a file. If the verifier has a key and the line is keyed, the verifier also
// checks end.Proof. Findings call the line by the given name.
func (v *Verifier) ExpectEnd(end admin.SealHead, name string) {
	v.expect(PointOf(end), name, false)
	v.ends = append(v.ends, namedEnd{end, name})
}

// namedEnd is an expected last line of the audit chain, and the name of the line in findings.
type namedEnd struct {
	admin.SealHead
	name string
}

// atEnd reports a wrong or missing SealHead.Proof of an expected last line, and lines that follow the expected last
// line.
func (v *Verifier) atEnd(e namedEnd) {
	switch {
	case len(v.key) > 0 && e.Keyed && e.Proof != proof(v.key, e.SealHead):
		v.report.add(Finding{Sequence: e.Sequence, Kind: Changed, What: e.name + " was not written with the key: lines after it may have been cut off"})
	case len(v.key) > 0 && !e.Keyed && v.keyed:
		v.report.add(Finding{Sequence: e.Sequence, Kind: Changed, What: e.name + " is under no key, although lines before it are under one"})
	}
	if v.nextSequence-1 > e.Sequence {
		v.report.add(Finding{Sequence: e.Sequence + 1, To: v.nextSequence - 1, Kind: Inserted, What: "they come after " + e.name + ", which is line " + fmt.Sprint(e.Sequence)})
	}
}
