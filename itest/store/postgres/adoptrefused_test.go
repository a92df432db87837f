package postgres

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestATableThatDoesNotFitIsRefused(t *testing.T) {
	db := newDatabase(t)
	for _, c := range []struct {
		sentence, table string
		change          func(*sqlstore.Adopted)
		says            string
	}{
		{"J2_a_missing_table_is_refused", "create table in.other (id text)", nil, "write its name with its schema"},
		{"J2_a_view_is_refused", "create view in.processed as select ''::text as message_id", nil, "no unique key of exactly the columns message_id"},
		{"J2_a_missing_unique_key_is_refused", "create table in.processed (message_id text)", nil, "create unique index concurrently on"},
		{"J2_a_partial_key_is_refused", "create table in.processed (message_id text, gone bool); create unique index on in.processed (message_id) where not gone", nil, "no unique key"},
		{"J2_a_deferrable_key_is_refused", "create table in.processed (message_id text unique deferrable)", nil, "no unique key"},
		{"J2_a_key_of_more_columns_is_refused", "create table in.processed (message_id text, handler text default '', primary key (message_id, handler))", nil, "name the columns that its key has"},
		{"J2_a_key_of_fewer_columns_is_refused", "create table in.processed (message_id text primary key, handler text)",
			func(a *sqlstore.Adopted) { a.ConsumerColumn = "handler" }, "of exactly the columns handler, message_id"},
		{"J2_a_missing_column_is_refused", "create table in.processed (id text primary key, at timestamptz)", nil, "its columns are id, at"},
		{"J2_a_missing_source_column_is_refused", "create table in.processed (message_id text primary key)",
			func(a *sqlstore.Adopted) { a.SourceColumn = "origin" }, `no column "origin"`},
		{"J2_a_column_of_another_type_is_refused", "create table in.processed (message_id jsonb primary key)", nil, "of type jsonb, which cannot hold ids"},
		{"J2_a_time_that_is_none_is_refused", "create table in.processed (message_id text primary key, at bigint not null)",
			func(a *sqlstore.Adopted) { a.AtColumn = "at" }, "of type bigint"},
		{"J2_a_collation_that_takes_ids_for_equal_is_refused", `create collation in.folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
			create table in.processed (message_id text collate in.folded primary key)`, nil, "another collation"},
		{"J2_a_column_that_nothing_fills_is_refused", "create table in.processed (message_id text primary key, state text not null)", nil, "without a value for state"},
		{"J2_a_value_that_the_column_cannot_hold_is_refused", "create table in.processed (message_id text primary key, state varchar(3) not null)",
			func(a *sqlstore.Adopted) { a.Values = map[string]string{"state": "done"} }, "the value for state has 4 characters"},
		{"J2_a_value_of_another_type_is_refused", "create table in.processed (message_id text primary key, state int not null)",
			func(a *sqlstore.Adopted) { a.Values = map[string]string{"state": "done"} }, "the database would reject the markers"},
		{"J2_a_value_for_a_column_that_takes_none_is_refused", "create table in.processed (message_id text primary key, n int generated always as identity)",
			func(a *sqlstore.Adopted) { a.Values = map[string]string{"n": "1"} }, "the database would reject the markers"},
		{"J2_sources_without_a_column_are_refused_by_name", "create table in.processed (message_id text primary key)",
			func(a *sqlstore.Adopted) { a.Source = "semel:x" }, "a source that does not begin with"},
		{"trap_T98_an_unlogged_table_is_refused", "create unlogged table in.processed (message_id text primary key)", nil, `set logged`},
		{"trap_T98_an_unlogged_partition_is_refused", `create table in.processed (message_id text primary key) partition by hash (message_id);
			create table in.kept partition of in.processed for values with (modulus 2, remainder 0);
			create unlogged table in.lost partition of in.processed for values with (modulus 2, remainder 1)`, nil, `.lost set logged`},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			s := newFixture(t, db, sqlstore.Options{})
			s.exec(t, c.table)
			a := s.named(simple)
			if c.change != nil {
				c.change(&a)
			}
			if _, err := s.store.Adopt(t.Context(), a); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want that it says %q", err, c.says)
			}
		})
	}
	t.Run("J2_a_table_is_shared_only_with_a_column_for_the_consumer", func(t *testing.T) { shared(t, newFixture(t, db, sqlstore.Options{})) })
	t.Run("J2_what_a_table_loses_later_is_found_at_start", func(t *testing.T) {
		s := newSimple(t, db)
		s.exec(t, "alter table in.processed drop constraint processed_pkey")
		if err := s.store.Check(t.Context()); !errors.Is(err, semel.ErrSchema) || !strings.Contains(err.Error(), "no unique key") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("trap_T98_an_adopted_table_that_becomes_unlogged_is_found_at_start", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		s.exec(t, `create table in.processed (message_id text primary key) partition by hash (message_id)`)
		s.exec(t, `create table in.part partition of in.processed for values with (modulus 1, remainder 0)`)
		s = s.adopt(t, simple)
		if err := s.store.Check(t.Context()); err != nil {
			t.Error(err)
		}
		s.expectWorks(t, s.makeMarks(t, "1", "2"))
		s.exec(t, "alter table in.part set unlogged")
		sqlsuite.Refused(t, s.store.Check(t.Context()), s.inSchema("alter table in.part set logged"))
	})
	t.Run("J2_another_source_is_refused_where_the_table_has_no_column_for_it", func(t *testing.T) {
		s := newSimple(t, db)
		_, err := s.store.Scope(t.Context(), "billing", "shop", 0)
		s.expectError(t, err, store.ClassDown, "give the identity a constant source")
	})
}

func shared(t *testing.T, s *fixture) {
	s.exec(t, "create table in.processed (message_id text primary key)")
	s.exec(t, "create table in.scoped (message_id text, handler text, primary key (message_id, handler))")
	scoped := simple
	scoped.Table, scoped.ConsumerColumn = "in.scoped", "handler"
	renamed := scoped
	renamed.Values = map[string]string{"handler": "billing"}
	for _, c := range []struct {
		consumer string
		adopted  sqlstore.Adopted
		says     string
	}{
		{"billing", simple, ""},
		{"billing", simple, ""},
		{"shipping", simple, "consumer billing has adopted"},
		{"billing", scoped, ""},
		{"shipping", scoped, ""},
		{"mailing", renamed, "with the same value of handler"},
	} {
		c.adopted.Consumer = c.consumer
		_, err := s.store.Adopt(t.Context(), s.named(c.adopted))
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, semel.ErrSchema) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: got %v, want %q", c.consumer, err, c.says)
		}
	}
}

func TestTheRightsInAnAdoptedTable(t *testing.T) {
	dsn := services.Postgres(t)
	s := newFixture(t, openDB(t, dsn), sqlstore.Options{})
	s.exec(t, makeSimple)
	db := worker(t, dsn, fmt.Sprintf(`grant usage on schema %[1]q to worker; grant select, insert, update, delete on all tables in schema %[1]q to worker;
		revoke delete on %[1]q.processed from worker`, s.schema))
	store := newUnmigratedStore(t, db, sqlstore.Options{Schema: s.schema})
	t.Run("J2_a_right_that_is_missing_in_an_adopted_table_is_named", func(t *testing.T) {
		_, err := store.Adopt(t.Context(), s.named(simple))
		sqlsuite.Refused(t, err, "may not select, insert and delete in")
	})
	t.Run("J2_a_role_that_cannot_create_adopts_a_table", func(t *testing.T) {
		role := queryOne[string](t, db, "select current_user")
		s.exec(t, "grant delete on in.processed to "+role)
		own, err := store.Adopt(t.Context(), s.named(simple))
		if err != nil {
			t.Fatal(err)
		}
		s.store, s.Instance.Store = own, own
		s.expectWorks(t, s.makeMarks(t, "1"))
		s.expectCounts(t, "1", 1, 1)
	})
}
