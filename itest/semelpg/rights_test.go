//go:build unix

package semelpg

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/services"
)

func TestARightThatIsMissingIsNamedAtTheStart(t *testing.T) {
	s := example(t, services.Postgres(t))
	exec := func(statement string) { services.Exec(t, s.dsn, statement) }
	if r := s.semel(t, "run", "--config", "postgres.yaml"); r.code != 0 || strings.Contains(r.errors, " lacks ") {
		t.Fatalf("%+v", r)
	}
	exec("do $$ begin if not exists (select from pg_roles where rolname = 'semel_worker') then create role semel_worker; end if; " +
		"execute format('grant usage on schema %I to semel_worker', current_schema()); end $$")
	t.Cleanup(func() { exec("drop owned by semel_worker; drop role semel_worker") })
	exec("do $$ begin execute format('grant select, insert, update, delete on all tables in schema %I to semel_worker', current_schema()); end $$")
	poor := s
	poor.dsn += map[bool]string{true: "&", false: "?"}[strings.Contains(s.dsn, "?")] + "role=semel_worker"
	if r := poor.semel(t, "run", "--config", "postgres.yaml"); strings.Contains(r.errors, " lacks ") {
		t.Errorf("a role with all rights is warned: %+v", r)
	}
	exec("revoke delete on semel_markers from semel_worker")
	r := poor.semel(t, "run", "--config", "postgres.yaml")
	if strings.Count(r.errors, " lacks ") != 1 || !strings.Contains(r.errors, "semel_worker lacks delete on ") || !strings.Contains(r.errors, "semel_markers") || !strings.Contains(r.errors, "grant delete on ") {
		t.Errorf("the right that is missing is not named: %+v", r)
	}
}
