//go:build unix

package semelpg

import (
	"testing"

	"github.com/semel-go/semel/itest/services"
)

func TestAPlainURLThroughAPoolerByTransaction(t *testing.T) {
	t.Run("P3_all_messages_are_applied_once", func(t *testing.T) {
		pooled := services.PgBouncer(t)
		s := example(t, pooled)
		var told summary
		s.done(t, &told, "run", "--json", "--config", "postgres.yaml")
		if n := told.Consumers["billing"]["applied"]; n != 7500 {
			t.Errorf("%d were applied, want 7500", n)
		}
	})
}
