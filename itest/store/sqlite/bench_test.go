package sqlite

import (
	"fmt"
	"testing"

	"github.com/semel-go/semel/store"
)

// BenchmarkBatch measures the time for a message in batches of 500, with one insert as effect. For comparison, the
// benchmark measures the inserts alone.
func BenchmarkBatch(b *testing.B) {
	i := instance(b, pragmas+foreignKeys)
	scope, err := i.Store.Scope(b.Context(), "billing", "", 0)
	if err != nil {
		b.Fatal(err)
	}
	next := 0
	run := func(b *testing.B, marked, broken bool) {
		for b.Loop() {
			var marks []store.Mark
			for n := range 500 {
				marks = append(marks, store.Mark{Scope: scope, ID: fmt.Appendf(nil, "%08x-0000-4000-8000-%012x", next+n, next+n), As: store.Applied})
			}
			next += 500
			used := marks
			if !marked {
				used = nil
			}
			batch, _, err := i.Store.Begin(b.Context(), store.TxOptions{}, used)
			if err != nil {
				b.Fatal(err)
			}
			for n := range marks {
				if err := i.Effect(b.Context(), batch.Tx(n), "e"); err != nil {
					b.Fatal(err)
				}
				if broken {
					batch.(store.TxStatus).TxAborted()
				}
			}
			if r := batch.Commit(b.Context(), store.Ending{}); r.Outcome != store.Committed {
				b.Fatal(r)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/500, "µs/message")
	}
	b.Run("unmarked", func(b *testing.B) { run(b, false, false) })
	b.Run("marked", func(b *testing.B) { run(b, true, false) })
	b.Run("marked, asked after each", func(b *testing.B) { run(b, true, true) })
}
