package postgres

import (
	"testing"
	"time"

	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// BenchmarkWalk removes half a million due markers in calls of a thousand, and reports the number of removed
// markers per second.
func BenchmarkWalk(b *testing.B) {
	db := fresh(b)
	for range b.N {
		b.StopTimer()
		s := newShop(b, db, sqlstore.Options{})
		scope, err := s.store.Scope(b.Context(), "billing", "", 0)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.store.Retain(b.Context(), store.Retention{Consumer: "billing", Keep: time.Hour}); err != nil {
			b.Fatal(err)
		}
		s.exec(b, `insert into in.semel_markers (scope, id, outcome, version, at)
select $1, '\x01'::bytea || uuid_send(gen_random_uuid()), 1, 0, now() - interval '1 day' - n * interval '1 millisecond' from generate_series(1, 500000) n`, scope)
		s.exec(b, "analyze in.semel_markers")
		if _, err := s.store.Advance(b.Context(), "billing"); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		began, removed := time.Now(), int64(0)
		for next := (store.ReapMark{}); !next.Done; {
			done, err := s.store.Reap(b.Context(), store.Reaping{Consumer: "billing", Most: 1000, After: next})
			if err != nil {
				b.Fatal(err)
			}
			next, removed = done.Next, removed+done.Markers
		}
		b.ReportMetric(float64(removed)/time.Since(began).Seconds(), "markers/s")
	}
}
