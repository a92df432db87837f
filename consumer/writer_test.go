package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/memstore"
)

func TestLeasesOfAStoreWithOneWriter(t *testing.T) {
	bubble(t, "T4_C5_a_handler_of_three_leases_that_fails_has_had_an_attempt_and_keeps_its_claim", func(t *testing.T) {
		store := &opening{Store: memstore.New()}
		received(t, store.Store, 1)
		c := working(config(nil))
		c.Inbox.Lease, c.Retry.First, c.IdleExit = 2*time.Second, time.Millisecond, time.Minute
		entries := 0
		counts := runs(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			pass(6 * time.Second)
			if entries++; entries < 3 {
				return errTest
			}
			return add(ctx, tx, m)
		}, c)
		rows, err := store.Rows(t.Context(), contract.RowFilter{})
		if err != nil || entries != 3 || counts.Inbox.Applied != 1 || counts.Inbox.Lost != 0 || rows[0].Attempts != 3 || rows[0].LastError != errTest.Error() {
			t.Errorf("%v: %d entries, %+v, %+v", err, entries, counts.Inbox, rows)
		}
	})
}
