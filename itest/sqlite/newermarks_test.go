package sqlite

import (
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

func TestMarkersOfANewerRelease(t *testing.T) {
	t.Run("P1_a_mark_that_meets_a_marker_of_a_newer_release_is_told_so", func(t *testing.T) {
		db := openFile(t, newFile(t), pragmas+foreignKeys)
		s := storeOn(t, db)
		i := instanceOn(t, s, db)
		if r, _, err := attempt(t, i, marks(t, s, "held")); err != nil || r.Outcome != contract.Committed {
			t.Fatal(r, err)
		}
		for _, outcome := range []int{2, 9, 257, 0, -3} {
			exec(t, db, "update semel_markers set outcome = ?", outcome)
			for _, print := range []semel.Fingerprint{{}, {Version: 1, Sum: [16]byte{1}}} {
				asked := marks(t, s, "other", "held")
				asked[1].Fingerprint = print
				b, v, err := s.Begin(t.Context(), contract.TxOptions{}, asked)
				if err != nil {
					t.Fatal(err)
				}
				b.Rollback(t.Context())
				if v[0].Kind != contract.Fresh || v[1].Kind != contract.Newer || outcome == 9 && v[1].Was != 9 {
					t.Errorf("outcome %d: the verdicts are %v", outcome, v)
				}
			}
		}
	})
}
