package audit

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/admin"
)

// LongestUnsealed is how long after it was done an act may be sealed: processes seal within
// seconds, and none may run for a night. Acts that were sealed later were open to changes, and
// so are all acts of a chain that was thrown away and made anew.
const LongestUnsealed = 24 * time.Hour

// lateLines are lines one behind the other that were sealed late, the worst by so much.
type lateLines struct {
	from, to, act int64
	by            time.Duration
}

// noteLate notes a line that was sealed long after its act was done.
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

// endLate reports what no head that was kept covers.
func (v *Verifier) endLate() {
	covered := int64(0)
	for _, h := range v.heads {
		if h.kept && h.met != nil && *h.met == h.Hash {
			covered = max(covered, h.Sequence)
		}
	}
	if from := covered + 1; len(v.key) > 0 && v.report.Keyed > 0 && v.unkeyed >= from {
		v.report.add(Finding{Sequence: from, To: v.unkeyed, Kind: Unkeyed,
			What: "whoever could write the tables before the first line under the key could have made them; a head that was kept from after that answers for them"})
	}
	for _, l := range v.late {
		if l.to <= covered {
			continue
		}
		if l.from <= covered {
			l.from, l.act = covered+1, 0
		}
		f := Finding{Sequence: l.from, Act: l.act, Kind: Late, What: fmt.Sprintf("up to %s after it was done: nothing shows that it was the same until then; "+
			"so is a chain that was thrown away and made anew; a head that was kept answers for it", l.by.Round(time.Second))}
		if l.to > l.from {
			f.To = l.to
		}
		v.report.add(f)
	}
}
