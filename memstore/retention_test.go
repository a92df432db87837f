package memstore

import (
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

func TestWhatLiesAtTheLowWaterMark(t *testing.T) {
	t.Run("H2_is_kept_and_what_lies_before_it_is_not", func(t *testing.T) {
		now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		s := New(Clock(func() time.Time { return now }))
		scope, err := s.Scope(t.Context(), "billing", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Retain(t.Context(), store.Retention{Consumer: "billing", Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		low := now.Add(-time.Hour)
		for id, at := range map[string]time.Time{"before": low.Add(-1), "at": low, "behind": low.Add(1)} {
			s.markers[identity{scope, id}] = marker{outcome: store.Applied, at: at}
		}
		if at, err := s.Advance(t.Context(), "billing"); err != nil || !at.Equal(low) {
			t.Fatalf("the low-water mark is %v, %v", at, err)
		}
		if r, err := s.Reap(t.Context(), store.Reaping{Consumer: "billing", Most: 10}); err != nil || r.Markers != 1 {
			t.Errorf("%+v was removed, %v", r, err)
		}
		marks := []store.Mark{{Scope: scope, ID: []byte("a"), Age: low}, {Scope: scope, ID: []byte("b"), Age: low.Add(-1)}, {Scope: scope, ID: []byte("at"), Age: low}}
		for i := range marks {
			marks[i].As = store.Applied
		}
		_, v, err := s.Begin(t.Context(), store.TxOptions{}, marks)
		if err != nil || v[0].Kind != store.Fresh || v[1].Kind != store.Old || v[2].Kind != store.Seen {
			t.Errorf("the verdicts are %+v, %v", v, err)
		}
	})
}
