package pgxstore

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
)

func TestAConnectionThatAHandlerSpoiled(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t), func(c *pgxpool.Config) { c.MaxConns = 1 }))
	t.Run("it_is_closed_and_the_store_is_back", func(t *testing.T) { sqlsuite.SpoiledConnection(t, h.directInstance()) })
}
