package sqlsuite_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/memstore"
	"pgregory.net/rapid"
)

// inMemory returns a memory store that has its own log of versions.
func inMemory() sqlsuite.Followed[*memstore.Tx] {
	store := memstore.New()
	return sqlsuite.Followed[*memstore.Tx]{
		Store: store,
		Append: func(_ context.Context, tx *memstore.Tx, stream string, version int) error {
			before, err := tx.Get(stream)
			if err != nil {
				return err
			}
			return tx.Set(stream, fmt.Appendf(before, "%d ", version))
		},
		Versions: func(t testing.TB, stream string) (all []int) {
			for field := range strings.FieldsSeq(string(store.Get(stream))) {
				var n int
				if _, err := fmt.Sscan(field, &n); err != nil {
					t.Error(err)
				}
				all = append(all, n)
			}
			return all
		},
	}
}

func TestDrawnVersions(t *testing.T) {
	t.Run("B4_B9_trap_T53_in_any_order_and_over_restarts_streams_end_as_the_ordered_ones_do", func(t *testing.T) {
		sqlsuite.Draws(t, 500)
		d := &sqlsuite.Drawing[*memstore.Tx]{Open: inMemory, Idle: 3 * time.Second, Again: 30}
		rapid.Check(t, func(r *rapid.T) {
			rapid.SyncTest(r, func(r *rapid.T) { d.Play(t, r) })
		})
	})
}
