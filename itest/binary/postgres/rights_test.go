//go:build unix

package postgres

import (
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/services"
)

// grantMinimum returns the parameter s with a connection string for a new role. The role has the privileges
// that `semel migrate grants` prints, and the privileges that the handlers need for their own tables.
func grantMinimum(t *testing.T, s fixture, policy string, handlers ...string) (poor fixture, grants []string) {
	t.Helper()
	exec := func(statement string) { services.Exec(t, s.dsn, statement) }
	exec("do $$ begin if not exists (select from pg_roles where rolname = 'semel_worker') then create role semel_worker; end if; end $$")
	t.Cleanup(func() { exec("drop owned by semel_worker; drop role semel_worker") })
	r := s.semel(t, "migrate", "grants", "--config", policy, "--role", "semel_worker")
	if r.code != 0 {
		t.Fatalf("%+v", r)
	}
	exec(r.out)
	for _, table := range handlers {
		exec("grant select, insert, update on " + table + " to semel_worker")
	}
	var told struct{ Stores []struct{ Grants []string } }
	s.runJSON(t, &told, "migrate", "grants", "--config", policy, "--role", "semel_worker", "-o", "json")
	if n := strings.Count(r.out, ";\n"); len(told.Stores) != 1 || len(told.Stores[0].Grants) != n || n < 20 {
		t.Errorf("%d statements, and with -o json %+v", n, told)
	}
	poor = s
	poor.dsn += map[bool]string{true: "&", false: "?"}[strings.Contains(s.dsn, "?")] + "role=semel_worker"
	return poor, told.Stores[0].Grants
}

func TestARoleWithTheGrantsThatArePrinted(t *testing.T) {
	s := example(t, services.Postgres(t))
	if r := s.semel(t, "run", "--config", "postgres.yaml"); r.code != 0 || strings.Contains(r.errors, " lacks ") {
		t.Fatalf("%+v", r)
	}
	poor, grants := grantMinimum(t, s, "postgres.yaml", "accounts", "entries")
	t.Run("runs_the_consumer_without_a_warning_and_acts_on_its_messages", func(t *testing.T) {
		services.Exec(t, s.dsn, "delete from semel_inbox; delete from semel_markers; delete from semel_positions; delete from entries")
		if r := poor.semel(t, "run", "--config", "postgres.yaml", "--from-start"); r.code != 0 || strings.Contains(r.errors, " lacks ") || strings.Contains(r.errors, "42501") {
			t.Errorf("%+v", r)
		}
		if n := queryOne[int](t, s.dsn, "select count(*) from entries"); n == 0 {
			t.Error("nothing took effect")
		}
		for _, command := range [][]string{{"consumers", "pause", "--all"}, {"consumers", "resume", "--all"}, {"messages", "discard", "--all", "--yes"}} {
			if r := poor.semel(t, append(command, "--config", "postgres.yaml", "--because", "a test")...); r.code != 0 {
				t.Errorf("%v: %+v", command, r)
			}
		}
	})
	t.Run("is_warned_of_one_that_is_missing_with_the_grant", func(t *testing.T) {
		services.Exec(t, s.dsn, "revoke delete on semel_markers from semel_worker")
		for _, command := range []string{"run", "check"} {
			r := poor.semel(t, command, "--config", "postgres.yaml")
			if strings.Count(r.errors, " lacks ") != 1 || !strings.Contains(r.errors, "semel_worker lacks delete on ") || !strings.Contains(r.errors, "semel_markers") || !strings.Contains(r.errors, "grant delete on ") {
				t.Errorf("%s does not name the right that is missing: %+v", command, r)
			}
		}
	})
	t.Run("prints_what_it_needs_itself", func(t *testing.T) {
		var told struct{ Stores []struct{ Grants []string } }
		poor.runJSON(t, &told, "migrate", "grants", "--config", "postgres.yaml", "-o", "json")
		if !slices.Equal(told.Stores[0].Grants, grants) {
			t.Errorf("%v, not %v", told.Stores[0].Grants, grants)
		}
	})
}
