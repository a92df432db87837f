package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// A forger who can write the tables deletes the audit chain and changes audit records. Semel then adds the changed
// records to a new chain, with its key.
func TestAChainThatAForgerHadSealedAgain(t *testing.T) {
	begun := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	made := func(at func(done time.Time) time.Time) (lines []admin.Seal, end admin.SealHead) {
		for i := range 5 {
			done := begun.Add(time.Duration(i) * time.Hour)
			line := Next(key, end, store.Act{Number: int64(i + 1), Verb: "discard", Who: "ana", At: done}, at(done))
			lines, end = append(lines, line), HeadOf(key, line)
		}
		return lines, end
	}
	t.Run("G6_is_detected_by_the_time_of_its_seals", func(t *testing.T) {
		lines, end := made(func(time.Time) time.Time { return begun.Add(30 * 24 * time.Hour) })
		if found := verifyChain(key, lines, end); len(found) != 1 || !strings.HasPrefix(found[0], "lines 1 to 5: sealed late: up to 720h0m0s") {
			t.Errorf("found %q", found)
		}
	})
	t.Run("G6_is_detected_with_a_kept_head", func(t *testing.T) {
		_, kept := made(func(done time.Time) time.Time { return done.Add(5 * time.Second) })
		lines, end := made(func(time.Time) time.Time { return begun.Add(30 * 24 * time.Hour) })
		v := NewVerifier(key)
		v.Expect(PointOf(kept), "the head that was kept")
		v.ExpectEnd(end, "the end")
		for _, s := range lines {
			v.Add(Line{Seal: s})
		}
		if r := v.End(); r.Total != 2 || r.Findings[0].Kind != Late || r.Findings[1].Kind != Changed {
			t.Errorf("found %+v", r.Findings)
		}
	})
	t.Run("G6_late_seals_up_to_a_kept_head_are_not_reported", func(t *testing.T) {
		lines, end := made(func(time.Time) time.Time { return begun.Add(30 * 24 * time.Hour) })
		for n, want := range map[int]int{5: 0, 3: 1} {
			v := NewVerifier(key)
			v.Expect(PointOf(HeadOf(key, lines[n-1])), "the head that was kept")
			v.ExpectEnd(end, "the end")
			for _, s := range lines {
				v.Add(Line{Seal: s})
			}
			if r := v.End(); int(r.Total) != want || want > 0 && (r.Findings[0].Sequence != 4 || r.Findings[0].To != 5) {
				t.Errorf("with a head at line %d: %+v", n, r.Findings)
			}
		}
	})
	t.Run("G6_acts_that_were_sealed_in_time_are_not_reported", func(t *testing.T) {
		lines, end := made(func(done time.Time) time.Time { return done.Add(LongestUnsealed) })
		if found := verifyChain(key, lines, end); len(found) > 0 {
			t.Errorf("found %q", found)
		}
	})
}
