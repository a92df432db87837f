//go:build unix

package postgres

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/services"
)

func TestWithoutTablesNothingStartsAndTheErrorNamesTheCommand(t *testing.T) {
	s := example(t, services.Postgres(t))
	s.edit(t, "bare.yaml", "migrate: true", "migrate: false")
	s.runRefused(t, []string{"store shop: database ", "semel migrate up --config bare.yaml"}, "run", "--config", "bare.yaml")
	s.runRefused(t, []string{"semel migrate up --config bare.yaml"}, "messages", "ls", "--config", "bare.yaml")
	if r := s.semel(t, "migrate", "status", "--config", "bare.yaml"); r.code != 4 || !strings.Contains(r.out, "missing") {
		t.Errorf("status: %+v", r)
	}
	if r := s.semel(t, "migrate", "up", "--config", "bare.yaml"); r.code != 0 || !strings.Contains(r.out, "ran ") {
		t.Errorf("up: %+v", r)
	}
	if r := s.semel(t, "migrate", "up", "--config", "bare.yaml"); r.code != 0 || !strings.Contains(r.out, "nothing to do") {
		t.Errorf("up again: %+v", r)
	}
	if r := s.semel(t, "migrate", "status", "--config", "bare.yaml"); r.code != 0 || strings.Contains(r.out, "missing") {
		t.Errorf("status: %+v", r)
	}
	services.Exec(t, s.dsn, "drop table entries")
	s.runRefused(t, []string{"bare.yaml:", "consumers.billing.handler.sql.statements[1]", "the database rejects the statement", `"entries" does not exist`},
		"run", "--config", "bare.yaml")
}

func TestAnUpsertWithoutItsUniqueKeyIsRefusedAtTheStart(t *testing.T) {
	t.Run("B5_where_the_table_has_none_of_just_its_columns", func(t *testing.T) {
		s := example(t, services.Postgres(t))
		services.Exec(t, s.dsn, "create table search_index (account text, amount bigint)")
		s.edit(t, "upsert.yaml", "          payment: id\n", "",
			"insert into entries (payment, account, amount) values (:payment, :account, :amount)", "upsert: {table: search_index, key: [account], version: amount}")
		s.runRefused(t, []string{"upsert.yaml:", "consumers.billing.handler.sql.statements[1]", "the database rejects the statement", "no unique or exclusion constraint"},
			"run", "--config", "upsert.yaml")
		services.Exec(t, s.dsn, "alter table search_index add unique (account)")
		if r := s.semel(t, "run", "--config", "upsert.yaml", "-o", "json"); r.code != 0 || !strings.Contains(r.out, `"applied"`) {
			t.Errorf("with the key: %+v", r)
		}
	})
}

func TestTablesThatDoNotProtect(t *testing.T) {
	s := example(t, services.Postgres(t))
	config := []string{"--config", "postgres.yaml"}
	if r := s.semel(t, append([]string{"migrate", "up"}, config...)...); r.code != 0 {
		t.Fatalf("up: %+v", r)
	}
	t.Run("trap_T98_unlogged_markers_are_found_by_every_command", func(t *testing.T) {
		services.Exec(t, s.dsn, "alter table semel_markers set unlogged")
		for code, commands := range map[int][][]string{1: {{"run"}, {"messages", "ls"}}, 4: {{"migrate", "up"}, {"migrate", "status"}}} {
			for _, command := range commands {
				r := s.semel(t, append(command, config...)...)
				if r.code != code || !strings.Contains(r.errors, `alter table "public".semel_markers set logged`) {
					t.Errorf("%v: %+v, want code %d and the remedy", command, r, code)
				}
			}
		}
		services.Exec(t, s.dsn, "alter table semel_markers set logged")
		if r := s.semel(t, append([]string{"migrate", "status"}, config...)...); r.code != 0 {
			t.Errorf("after the remedy: %+v", r)
		}
	})
}

func TestMigrationsArePrintedWithoutADatabase(t *testing.T) {
	s := example(t, "postgres://nobody@127.0.0.1:1/nothing")
	if r := s.semel(t, "migrate", "print", "--config", "postgres.yaml"); r.code != 0 || !strings.Contains(r.out, "semel_markers") {
		t.Errorf("%+v", r)
	}
}

func TestADatabaseThatCanNotBeReachedIsAnErrorWithARemedy(t *testing.T) {
	const address = "127.0.0.1:1" // nothing listens at port 1; a random free port could be taken by another process
	s := example(t, "postgres://shop:hunter2@"+address+"/shop")
	for _, command := range [][]string{{"run"}, {"migrate", "up"}, {"migrate", "status"}, {"messages", "ls"}} {
		s.runRefused(t, []string{address, "no server listens there; start the server"}, append(command, "--config", "postgres.yaml")...)
	}
	t.Run("of_the_connection_string_nothing_is_shown_that_may_be_a_password", func(t *testing.T) {
		for _, dsn := range []string{"postgres://shop:hunter2@db:54a32/shop", "postgres://shop:hun%ter2@db/shop", "hunter2", "postgres://shop@db/shop?sslmode=hunter2"} {
			s.dsn = dsn
			r := s.semel(t, "run", "--config", "postgres.yaml")
			if r.code != 1 && r.code != 3 || strings.Contains(r.out+r.errors, "hun") || !strings.Contains(r.errors, "url") {
				t.Errorf("%s: %+v", dsn, r)
			}
		}
	})
}

// startPasswordServer starts a server that requires a password for the role "shop".
func startPasswordServer(t *testing.T, password string) *services.Server {
	t.Helper()
	server := services.StartPostgres(t, services.Options{})
	services.Exec(t, server.DSN(), "create role shop login password '"+password+"'", `do $$ begin execute format(
		$copy$copy (values ('host all shop 127.0.0.1/32 scram-sha-256'), ('host all postgres 127.0.0.1/32 trust')) to %L$copy$,
		current_setting('hba_file')); end $$`)
	server.Stop()
	server.Start()
	return server
}

func TestARoleThatIsRefusedIsAnErrorWithARemedyAndWithoutThePassword(t *testing.T) {
	server := startPasswordServer(t, "p@ss/w:rd")
	as := func(user string) string { return strings.Replace(server.DSN(), "postgres@", user+"@", 1) }
	s := example(t, as("shop:hunter2"))
	run := []string{"run", "--config", "postgres.yaml"}
	s.runRefused(t, []string{"28P01", "rejects the password in the connection string"}, run...)
	if r := s.semel(t, run...); strings.Contains(r.out+r.errors, "hunter2") {
		t.Errorf("the password is shown: %+v", r)
	}
	s.dsn = as("nobody")
	s.runRefused(t, []string{"28000", "pg_hba.conf rejects it"}, run...)
	s.dsn = as("shop:p%40ss%2Fw%3Ard")
	s.runRefused(t, []string{"42501", "grant"}, run...)
	s.dsn = strings.Replace(s.dsn, "/postgres?", "/nothing?", 1)
	s.runRefused(t, []string{"3D000", "the database in the connection string does not exist"}, run...)
	t.Run("with_the_right_to_create_it_works", func(t *testing.T) {
		services.Exec(t, server.DSN(), "grant create on schema public to shop")
		s.dsn = as("shop:p%40ss%2Fw%3Ard")
		if r := s.semel(t, append(run, "--log-level", "error")...); r.code != 0 {
			t.Errorf("%+v", r)
		}
	})
}
