package audit

import (
	"fmt"

	"github.com/semel-go/semel/internal/admin"
)

// ExpectEnd has the chain end where its store, or its file, says that it ends. The proof of
// an end under a key is looked at where there is a key.
func (v *Verifier) ExpectEnd(end admin.SealHead, name string) {
	v.expect(PointOf(end), name, false)
	v.ends = append(v.ends, namedEnd{end, name})
}

// namedEnd is an end, with what it is for people.
type namedEnd struct {
	admin.SealHead
	name string
}

// atEnd says what is wrong with an end.
func (v *Verifier) atEnd(e namedEnd) {
	switch {
	case len(v.key) > 0 && e.Keyed && e.Proof != proof(v.key, e.SealHead):
		v.report.add(Finding{Sequence: e.Sequence, Kind: Changed, What: e.name + " was not written with the key: lines may be cut off behind it"})
	case len(v.key) > 0 && !e.Keyed && v.keyed:
		v.report.add(Finding{Sequence: e.Sequence, Kind: Changed, What: e.name + " is under no key, and lines before it are under one"})
	}
	if v.next-1 > e.Sequence {
		v.report.add(Finding{Sequence: e.Sequence + 1, To: v.next - 1, Kind: Inserted, What: "they stand behind " + e.name + ", which is line " + fmt.Sprint(e.Sequence)})
	}
}
