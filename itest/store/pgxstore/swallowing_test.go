package pgxstore

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
)

func TestASwallowedInsertIsNoticed(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t)))
	h.exec(t, "create function in.eat() returns trigger language plpgsql as $$ begin return null; end $$")
	swallow := func(t testing.TB, table string) func() {
		h.exec(t, "create trigger eats before insert on in.semel_"+table+" for each row execute function in.eat()")
		return func() { h.exec(t, "drop trigger eats on in.semel_"+table) }
	}
	t.Run("at_once", func(t *testing.T) {
		sqlsuite.Swallowed(t, sqlsuite.Swallowing[pgx.Tx]{Store: h.Store, Swallow: swallow})
	})
	t.Run("queued", func(t *testing.T) {
		sqlsuite.Swallowed(t, sqlsuite.Swallowing[*pgxstore.Queue]{Store: h.Store.Queued(), Swallow: swallow})
	})
}
