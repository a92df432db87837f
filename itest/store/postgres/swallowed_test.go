package postgres

import (
	"database/sql"
	"testing"

	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestASwallowedInsertIsNoticedInATable(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	s.exec(t, "create function in.eat() returns trigger language plpgsql as $$ begin return null; end $$")
	sqlsuite.Swallowed(t, sqlsuite.Swallowing[*sql.Tx]{Store: s.store, Swallow: func(t testing.TB, table string) func() {
		s.exec(t, "create trigger eats before insert on in.semel_"+table+" for each row execute function in.eat()")
		return func() { s.exec(t, "drop trigger eats on in.semel_"+table) }
	}})
	t.Run("trap_T145_a_rule_that_swallows_acts_is_noticed", func(t *testing.T) {
		s.exec(t, "create rule eats as on insert to in.semel_acts do instead nothing")
		defer s.exec(t, "drop rule eats on in.semel_acts")
		if err := s.store.Pause(t.Context(), "billing", true, store.Act{Verb: "pause", Who: "ana"}); err == nil {
			t.Error("a consumer is paused, and nothing tells by whom")
		}
		sqlsuite.Refused(t, s.store.Check(t.Context()), "semel_acts has the rule eats")
	})
}

func TestATableOfDaysWhoseRowIsGone(t *testing.T) {
	db := newDatabase(t)
	t.Run("trap_T145_a_deleted_row_of_dated_is_noticed_at_start_and_no_second_table_is_made", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{}).useDailyPartitions(t, 0)
		s.processAll(t, store.Applied, uuid(0, 1))
		s.exec(t, "delete from in.semel_dated")
		b, v, err := s.store.Begin(t.Context(), store.TxOptions{}, sqlsuite.Marks[*sql.Tx](t, s.store, "shop", uuid(0, 1)))
		if err == nil {
			b.Rollback(t.Context())
			t.Errorf("a running process reports: %+v", v)
		}
		all := newUnmigratedStore(t, db, sqlstore.Options{Schema: s.schema})
		sqlsuite.Refused(t, all.Check(t.Context()), "semel_markers_1 has markers of a consumer by day")
		if _, err := all.Dated(t.Context(), sqlstore.Dated{Consumer: "billing", IDTime: identity.UUIDv7}); err == nil {
			t.Error("a second table of days is made, in which nothing was applied")
		}
	})
}
