package audit

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/admin"
)

// LongestUnsealed is the longest time that may pass between the writing of an audit record and its addition to the
// audit chain. If more time has passed, the verifier reports the record. Processes add audit records within seconds,
// but possibly no process runs for a night. Changes of a record that is not in the chain yet are not detected. If a
// chain was deleted and written again, its records were also added late.
const LongestUnsealed = 24 * time.Hour

// lateLines is a range of consecutive audit lines that were written late. The field by is the longest delay of these
// lines.
type lateLines struct {
	from, to, act int64
	by            time.Duration
}

// noteLate records an audit line if it was written more than LongestUnsealed after its audit record.
func (v *Verifier) noteLate(s admin.Seal, sequence int64) {
	by := s.At.Sub(s.Act.At)
	if by <= LongestUnsealed {
		return
	}
	if n := len(v.late); n > 0 && (v.late[n-1].to == sequence-1 || n == MostFindings) {
		last := &v.late[n-1]
		last.to, last.by = max(last.to, sequence), max(last.by, by)
		return
	}
	v.late = append(v.late, lateLines{sequence, sequence, s.Act.Number, by})
}

// endLate reports late and unkeyed audit lines that come after the last line that was saved outside of the store.
func (v *Verifier) endLate() {
	covered := int64(0)
	for _, h := range v.requiredLines {
		if h.kept && h.met != nil && *h.met == h.Hash {
			covered = max(covered, h.Sequence)
		}
	}
	if from := covered + 1; len(v.key) > 0 && v.report.Keyed > 0 && v.unkeyed >= from {
		v.report.add(Finding{Sequence: from, To: v.unkeyed, Kind: Unkeyed,
			What: "anybody who could write the tables before the first line under the key could have written them; a head that was kept from after that proves them"})
	}
	for _, l := range v.late {
		if l.to <= covered {
			continue
		}
		if l.from <= covered {
			l.from, l.act = covered+1, 0
		}
		f := Finding{Sequence: l.from, Act: l.act, Kind: Late, What: fmt.Sprintf("up to %s after it was done: changes before the seal cannot be detected;  "+
			"a chain that was deleted and written again looks like this too; a head that was kept rules this out", l.by.Round(time.Second))}
		if l.to > l.from {
			f.To = l.to
		}
		v.report.add(f)
	}
}
