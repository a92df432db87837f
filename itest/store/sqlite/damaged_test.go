package sqlite

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
)

const remade = "create table semel_guard (number integer primary key references semel_guard_end (number) deferrable initially deferred, asked integer)"

func TestDamagedTables(t *testing.T) {
	t.Run("trap_T98_tables_that_do_not_protect_are_refused_with_the_statement_that_mends_them", func(t *testing.T) {
		for _, d := range []struct{ done, says, remedy string }{
			{"create trigger mine before insert on semel_markers begin select raise(ignore); end", "semel_markers has the trigger mine", `drop trigger "mine"`},
			{"create trigger Mine insert on SEMEL_inbox begin select raise(ignore); end", "semel_inbox has the trigger Mine", `drop trigger "Mine"`},
			{"insert into semel_guard_end values (1)", "semel_guard_end has rows", "delete from semel_guard_end"},
			{"drop table semel_guard; create table semel_guard (number integer primary key, asked integer)",
				"semel_guard has no deferred foreign key", "drop table semel_guard; " + remade},
			{"drop table semel_guard; " + strings.ReplaceAll(remade, "deferrable initially deferred", ""),
				"semel_guard has no deferred foreign key", "drop table semel_guard; " + remade},
			{"drop table semel_guard; " + strings.ReplaceAll(remade, "semel_guard_end (number)", "semel_scopes (number)"),
				"semel_guard has no deferred foreign key", "drop table semel_guard; " + remade},
			{"pragma foreign_keys = 0; insert into semel_guard values (1, null); pragma foreign_keys = 1", "semel_guard has rows", "delete from semel_guard"},
			{"drop table semel_setup", "semel_setup is missing", "create it as semel migrate print shows it"},
			{"drop table semel_guard", "semel_guard is missing", "create it as semel migrate print shows it"},
			{"drop table semel_markers", "semel_markers is missing", "restore it from a backup"},
		} {
			s, db := newMigratedStore(t, sqlstore.Options{})
			exec(t, db, d.done)
			err := s.Check(t.Context())
			sqlsuite.Refused(t, err, d.says)
			if err == nil || !strings.Contains(err.Error(), d.remedy) {
				t.Errorf("after %s the remedy is missing: %v", d.done, err)
			}
			if first, _, _ := strings.Cut(d.remedy, " "); first == "drop" || first == "delete" {
				exec(t, db, d.remedy)
				if err := s.Check(t.Context()); err != nil {
					t.Errorf("after %s and %s: %v", d.done, d.remedy, err)
				}
			}
		}
	})
	t.Run("what_only_looks_at_the_tables_is_let_alone", func(t *testing.T) {
		s, db := newMigratedStore(t, sqlstore.Options{})
		exec(t, db, "create table told (number); create trigger tell after insert on semel_inbox begin insert into told values (new.number); end")
		if err := s.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
