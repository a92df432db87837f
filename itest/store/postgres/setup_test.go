package postgres

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/sqlstore"
)

func TestSetupFilesThatEndTheirTransaction(t *testing.T) {
	dsn := services.Postgres(t)
	s := newFixture(t, openDB(t, dsn), sqlstore.Options{})
	t.Run("trap_T103_a_set_up_that_would_end_its_transaction_is_refused_with_the_place", func(t *testing.T) {
		for text, place := range map[string]string{
			"create table in.half (id int);\n  commit;\ncreate table in.other (id int)": "line 2, column 3: COMMIT",
			"create table in.half (id int); /* x */ ROLLBACK":                           "line 1, column ",
			"begin; create table in.half (id int); commit":                              "line 1, column 1: BEGIN",
			"start transaction; create table in.half (id int)":                          "START controls",
			"create table in.half (id int); insert into in.half values (';); commit":    "never ends",
			"\\set x 1\ncreate table in.half (id int)":                                  "line 1, column 1",
		} {
			ran, err := s.store.Setup(t.Context(), "half.sql", s.inSchema(text))
			if ran || err == nil || !strings.Contains(err.Error(), place) || !strings.Contains(err.Error(), "half.sql: nothing of it ran") {
				t.Errorf("%q: ran %t, %v, want %q", text, ran, err, place)
			}
			if queryOne[bool](t, s.db, "select to_regclass($1) is not null", s.inSchema("in.half")) {
				t.Errorf("%q: half of it ran", text)
			}
		}
	})
	t.Run("trap_T103_an_ending_that_cannot_be_read_is_found_when_it_has_run", func(t *testing.T) {
		// With this setting, the server treats a backslash as an escape of a quote, and Semel does not.
		odd := newUnmigratedStore(t, openDB(t, dsn, "standard_conforming_strings=off"), sqlstore.Options{Schema: s.schema})
		text := s.inSchema(`create table in.first (id text); insert into in.first values ('x\''); commit; create table in.second (id int); insert into in.first values ('x\'')`)
		ran, err := odd.Setup(t.Context(), "odd.sql", text)
		if ran || err == nil {
			t.Errorf("ran %t, %v", ran, err)
		}
		if queryOne[bool](t, s.db, "select to_regclass($1) is not null", s.inSchema("in.first")) {
			t.Error("half of it ran")
		}
		text = s.inSchema(`insert into in.once values ('x\''); rollback; create table in.second (id int); insert into in.once values ('x\'')`)
		ran, err = odd.Setup(t.Context(), "odd.sql", text)
		if ran || err == nil || strings.Contains(err.Error(), "nothing of it ran") || !strings.Contains(err.Error(), "those after it may have taken effect") {
			t.Errorf("ran %t, %v", ran, err)
		}
	})
}

func TestSetupsOfReplicas(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	t.Run("set_ups_that_create_the_same_table_at_once_take_turns", func(t *testing.T) {
		for round := range 10 {
			var all sync.WaitGroup
			for replica := range 6 {
				all.Go(func() {
					text := s.inSchema(fmt.Sprintf("create table if not exists in.table_%d (id int primary key); -- release %d", round, replica))
					if ran, err := s.store.Setup(t.Context(), "setup.sql", text); !ran || err != nil {
						t.Errorf("ran %t, %v", ran, err)
					}
				})
			}
			all.Wait()
		}
	})
}
