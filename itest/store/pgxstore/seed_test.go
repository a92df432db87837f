package pgxstore

import (
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/sqlstore"
)

func TestSeeding(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t)))
	t.Run("J2_ids_are_seeded_through_pgx", func(t *testing.T) {
		h.exec(t, "create table in.old as select gen_random_uuid() as id from generate_series(1, 2500)")
		sum, err := h.Seed(t.Context(), sqlstore.Seed{Consumer: "billing", Source: "shop", Table: h.inSchema("in.old"), ID: "id"})
		if err != nil || sum != (sqlstore.Seeded{Read: 2500, Written: 2500}) {
			t.Errorf("%+v, %v", sum, err)
		}
		if n := h.number(t, "select count(*) from in.semel_markers where outcome = 1"); n != 2500 {
			t.Errorf("%d markers", n)
		}
		if r := deliverDirect(t, h, []string{"new"}); r.Err != nil {
			t.Error(r.Err)
		}
		h.wantApplied(t, "new")
	})
}
