package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
)

// damages contains changes that a user may have made to the tables, each with the fault that the check reports and the
// statement that repairs the fault. In statements, "in." is replaced by the schema.
var damages = []struct{ done, says, remedy string }{
	{"alter table in.semel_markers set unlogged", "semel_markers is not kept through a crash", "alter table in.semel_markers set logged"},
	{"alter table in.semel_edits drop constraint semel_edits_row_fkey; alter table in.semel_inbox set unlogged", "semel_inbox is not kept through a crash", "alter table in.semel_inbox set logged"},
	{"alter table in.semel_scopes set unlogged", "semel_scopes is not kept through a crash", "alter table in.semel_scopes set logged"},
	{"alter table in.semel_positions set unlogged", "semel_positions is not kept through a crash", "alter table in.semel_positions set logged"},
	{"create trigger mine before insert on in.semel_markers for each row execute function suppress_redundant_updates_trigger()",
		"semel_markers has the trigger mine", "drop trigger mine on in.semel_markers"},
	{"create trigger \"My own\" after insert on in.semel_guard for each row execute function suppress_redundant_updates_trigger()",
		"semel_guard has the trigger \"My own\"", "drop trigger \"My own\" on in.semel_guard"},
	{"create trigger mine before insert on in.semel_inbox for each row execute function suppress_redundant_updates_trigger()",
		"semel_inbox has the trigger mine", "drop trigger mine on in.semel_inbox"},
	{"create rule mine as on insert to in.semel_markers do instead nothing", "semel_markers has the rule mine", "drop rule mine on in.semel_markers"},
	{"insert into in.semel_guard_end values (1)", "semel_guard_end has rows", "delete from in.semel_guard_end"},
	{"alter table in.semel_guard disable trigger all", "semel_guard has no deferred foreign key that is enforced", "alter table in.semel_guard enable trigger all"},
	{"alter table in.semel_guard drop constraint semel_guard_number_fkey", "semel_guard has no deferred foreign key",
		"alter table in.semel_guard add foreign key (number) references in.semel_guard_end (number) deferrable initially deferred"},
	{"alter table in.semel_markers drop constraint semel_markers_pkey", "semel_markers has no primary key", "alter table in.semel_markers add primary key (scope, id)"},
	{"alter table in.semel_inbox drop constraint semel_inbox_scope_id_conflict_key", "semel_inbox has no unique key",
		"alter table in.semel_inbox add unique (scope, id, conflict)"},
	{"alter table in.semel_acts disable trigger semel_acts_stay", "a trigger is off", "alter table in.semel_acts enable trigger all"},
	{"drop table in.semel_setup", "semel_setup is missing", "create it as semel migrate print shows it"},
	{"drop table in.semel_markers cascade", "semel_markers is missing", "restore it from a backup"},
	{"drop table in.semel_guard_end cascade", "semel_guard_end is missing", "create it as semel migrate print shows it"},
	{"alter table in.semel_inbox drop constraint semel_inbox_scope_id_conflict_key, add unique (scope, id, conflict) deferrable",
		"semel_inbox has no unique key", "alter table in.semel_inbox add unique (scope, id, conflict)"},
	{"do $$ begin alter table in.semel_inbox drop constraint semel_inbox_scope_id_conflict_key; " +
		"create unique index on in.semel_inbox (scope, id, conflict) where id is not null; end $$",
		"semel_inbox has no unique key", "alter table in.semel_inbox add unique (scope, id, conflict)"},
	{"alter table in.semel_guard alter constraint semel_guard_number_fkey deferrable initially immediate", "semel_guard has no deferred foreign key",
		"alter table in.semel_guard add foreign key (number) references in.semel_guard_end (number) deferrable initially deferred"},
	{"create rule mine as on insert to in.semel_inbox do instead nothing", "semel_inbox has the rule mine", "drop rule mine on in.semel_inbox"},
	{mine + "alter table in.semel_markers enable always trigger mine", "semel_markers has the trigger mine", "drop trigger mine on in.semel_markers"},
	{"create rule mine as on insert to in.semel_markers do instead nothing; alter table in.semel_markers enable always rule mine",
		"semel_markers has the rule mine", "drop rule mine on in.semel_markers"},
	{guardTriggers("enable replica", 1), "semel_guard has no deferred foreign key that is enforced", "alter table in.semel_guard enable trigger all"},
	{guardTriggers("disable", 1), "semel_guard has no deferred foreign key that is enforced", "alter table in.semel_guard enable trigger all"},
	{"alter table in.semel_acts enable replica trigger semel_acts_stay", "a trigger is off", "alter table in.semel_acts enable trigger all"},
	{"create trigger mine before update on in.semel_retention for each row execute function suppress_redundant_updates_trigger()",
		"semel_retention has the trigger mine", "drop trigger mine on in.semel_retention"},
	{"create trigger mine before insert on in.semel_positions for each row execute function suppress_redundant_updates_trigger()",
		"semel_positions has the trigger mine", "drop trigger mine on in.semel_positions"},
	{"create trigger mine before update on in.semel_dated for each row execute function suppress_redundant_updates_trigger()",
		"semel_dated has the trigger mine", "drop trigger mine on in.semel_dated"},
	{partitioned + "alter table in.part set unlogged", "part is not kept through a crash", "alter table in.part set logged"},
}

// SQL that creates a trigger that prevents inserts of markers.
const mine = "create trigger mine before insert on in.semel_markers for each row execute function suppress_redundant_updates_trigger(); "

// SQL that replaces the table of markers by a table with two partitions. The second partition is in.part.
const partitioned = `create table in.parts (like in.semel_markers including all) partition by hash (scope, id);
	create table in.whole partition of in.parts for values with (modulus 2, remainder 0);
	create table in.part partition of in.parts for values with (modulus 2, remainder 1);
	alter table in.semel_markers rename to former; alter table in.parts rename to semel_markers; `

// guardTriggers returns SQL that applies a command to the two triggers that enforce the foreign key of the guard, but
// to at most as many triggers as most says. The names of these triggers contain a number.
func guardTriggers(do string, most int) string {
	return fmt.Sprintf(`do $do$ declare n text; begin
		for n in select tgname from pg_trigger where tgrelid = 'in.semel_guard'::regclass and tgisinternal order by tgname limit %d loop
			execute 'alter table in.semel_guard %s trigger ' || quote_ident(n);
		end loop; end $do$`, most, do)
}

func TestDamagedTables(t *testing.T) {
	db := newDatabase(t)
	t.Run("trap_T98_tables_that_do_not_protect_are_refused_with_the_statement_that_mends_them", func(t *testing.T) {
		for _, d := range damages {
			s := newFixture(t, db, sqlstore.Options{})
			s.exec(t, d.done)
			err := s.store.Check(t.Context())
			sqlsuite.Refused(t, err, d.says)
			if err != nil && !strings.Contains(err.Error(), s.inSchema(d.remedy)) {
				t.Errorf("after %s the remedy is missing: %v", d.done, err)
			}
			s.mend(t, s.inSchema(d.remedy), d.done)
		}
	})
	t.Run("trap_T98_all_damages_are_named_at_once", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		for _, d := range damages[:9] {
			s.exec(t, strings.ReplaceAll(d.done, "create trigger mine", "create or replace trigger mine"))
		}
		err := s.store.Check(t.Context())
		for _, d := range damages[:9] {
			sqlsuite.Refused(t, err, d.says)
		}
		s.exec(t, "drop rule mine on in.semel_markers")
		s.exec(t, "delete from in.semel_guard_end")
	})
	t.Run("what_only_looks_at_the_tables_is_let_alone", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		s.exec(t, "create function in.tell() returns trigger language plpgsql as $$ begin perform pg_notify('parked', ''); return null; end $$")
		s.exec(t, "create trigger tell after insert on in.semel_inbox for each row execute function in.tell()")
		s.exec(t, "create index mine on in.semel_markers (at)")
		if err := s.store.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for name, done := range map[string]string{
		"a_trigger_that_is_off":              mine + "alter table in.semel_markers disable trigger mine",
		"a_trigger_for_replicas":             mine + "alter table in.semel_markers enable replica trigger mine",
		"a_rule_that_is_off":                 "create rule mine as on insert to in.semel_markers do instead nothing; alter table in.semel_markers disable rule mine",
		"a_rule_for_replicas":                "create rule mine as on insert to in.semel_markers do instead nothing; alter table in.semel_markers enable replica rule mine",
		"a_guard_whose_triggers_always_fire": guardTriggers("enable always", 2),
		"acts_whose_trigger_always_fires":    "alter table in.semel_acts enable always trigger semel_acts_stay",
		"markers_in_partitions":              partitioned,
	} {
		t.Run("what_does_nothing_here_is_let_alone/"+name, func(t *testing.T) {
			s := newFixture(t, db, sqlstore.Options{})
			s.exec(t, done)
			if err := s.store.Check(t.Context()); err != nil {
				t.Error(err)
			}
			s.expectWorks(t, s.makeMarks(t, "1", "2", "3"))
		})
	}
	t.Run("trap_T98_a_session_without_triggers_is_refused", func(t *testing.T) {
		dsn := services.Postgres(t)
		newMigratedStore(t, openDB(t, dsn), sqlstore.Options{})
		without := newUnmigratedStore(t, openDB(t, dsn, "session_replication_role=replica"), sqlstore.Options{})
		sqlsuite.Refused(t, without.Check(t.Context()), "session_replication_role is replica")
	})
}

// mend runs the remedy if the remedy is an SQL statement, and checks that the store accepts the tables again.
func (s *fixture) mend(t *testing.T, remedy, done string) {
	t.Helper()
	if first, _, _ := strings.Cut(remedy, " "); first != "alter" && first != "drop" && first != "delete" {
		return
	}
	exec(t, s.db, remedy)
	if err := s.store.Check(t.Context()); err != nil {
		t.Errorf("after %s and %s: %v", done, remedy, err)
	}
}
