package pgxstore

import (
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
)

func TestTwoRowsOfOneIdentityThatAreDue(t *testing.T) {
	due := func(t *testing.T, h *fixture) func(int64) {
		return func(number int64) { h.exec(t, services.DueByHand, number) }
	}
	t.Run("law_16_only_the_one_that_has_the_marker_is_worked_on", func(t *testing.T) {
		h := newFixture(t, openPool(t, services.Postgres(t)))
		sqlsuite.OpenTwins(t, h.directInstance(), due(t, h))
	})
	t.Run("law_16_and_so_where_handlers_queue", func(t *testing.T) {
		h := newFixture(t, openPool(t, services.Postgres(t)))
		sqlsuite.OpenTwins(t, h.queuedInstance(), due(t, h))
	})
}
