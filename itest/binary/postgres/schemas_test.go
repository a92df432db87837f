//go:build unix

package postgres

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/services"
)

func TestSchemasInWhichOthersMayCreateAreWarnedOf(t *testing.T) {
	s := example(t, services.Postgres(t))
	warned := func(of string) {
		t.Helper()
		for _, args := range [][]string{{"migrate", "up", "--config", "postgres.yaml"}, {"check", "--config", "postgres.yaml"}} {
			r := s.semel(t, args...)
			const what = "may create objects in schema"
			if n := strings.Count(r.errors, what); of == "" && n > 0 || of != "" && (n != 1 || !strings.Contains(r.errors, "from "+of)) {
				t.Errorf("semel %s warns %d times, want of %q:\n%s", args[0], n, of, r.errors)
			}
		}
	}
	exec := func(statement string) { services.Exec(t, s.dsn, statement) }
	exec("do $$ begin execute format('revoke create on schema %I from public', current_schema()); end $$")
	warned("")
	exec("do $$ begin execute format('grant create on schema %I to public', current_schema()); end $$")
	warned("PUBLIC")
	exec("do $$ begin execute format('revoke create on schema %I from public', current_schema()); end $$")
	warned("")
	exec("do $$ begin if not exists (select from pg_roles where rolname = 'semel_guest') then create role semel_guest; end if; " +
		"execute format('grant create on schema %I to semel_guest', current_schema()); end $$")
	t.Cleanup(func() { exec("drop owned by semel_guest; drop role semel_guest") })
	warned("semel_guest")
}
