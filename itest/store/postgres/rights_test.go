package postgres

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/storetest"
)

// useMinimalRole makes a test's store use a role that has the privileges of Grants and no other privileges in
// Semel's schema. The suite itself reads and damages the tables as the owner.
func useMinimalRole(t testing.TB, s *fixture, role string, db *sql.DB) *fixture {
	t.Helper()
	grants, err := s.store.Grants(t.Context(), role)
	if err != nil {
		t.Fatal(err)
	}
	for _, grant := range append(grants, s.inSchema("grant select, insert on in.effects, in.once to "+role)) {
		exec(t, s.db, grant)
	}
	s.store = newUnmigratedStore(t, db, sqlstore.Options{Schema: s.schema})
	s.Store = s.store
	return s
}

// nameOf returns the role of a connection.
func nameOf(t testing.TB, db *sql.DB) string {
	return queryOne[string](t, db, "select current_user::text")
}

// aRoleWithTheGrantsKeepsTheLaws runs the test cases with a store whose role has only the privileges of Grants.
func aRoleWithTheGrantsKeepsTheLaws(t *testing.T, only func(name string) bool) {
	t.Run("a_role_with_the_grants_that_are_printed_may_do_what_the_suite_of_stores_does", func(t *testing.T) {
		dsn := services.Postgres(t)
		services.Hurry(t, dsn)
		owner, db := openDB(t, dsn), worker(t, dsn, "select 'worker'")
		role := nameOf(t, db)
		shops := services.Lent[*fixture]{
			Make: func(t testing.TB) *fixture {
				return useMinimalRole(t, newFixture(t, owner, sqlstore.Options{}), role, db)
			},
			Empty: func(t testing.TB, used *fixture) *fixture {
				return useMinimalRole(t, truncateTables(t, used), role, db)
			},
		}
		storetest.Run(t, storetest.Harness[*sql.Tx]{
			Open: func(t testing.TB) storetest.Instance[*sql.Tx] { return shops.Open(t).Instance },
			Can:  abilities,
			Only: only,
		})
	})
}

func TestEachGrantThatIsMissingIsNamed(t *testing.T) {
	dsn := services.Postgres(t)
	owner, db := newFixture(t, openDB(t, dsn), sqlstore.Options{}), worker(t, dsn, "select 'worker'")
	role := nameOf(t, db)
	dated := newUnmigratedStore(t, owner.db, sqlstore.Options{Schema: owner.schema})
	if _, err := dated.Dated(t.Context(), sqlstore.Dated{Consumer: "payments", IDTime: identity.UUIDv7, Back: 3}); err != nil {
		t.Fatal(err)
	}
	grants, err := owner.store.Grants(t.Context(), role)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("tables_of_days_are_among_them", func(t *testing.T) {
		if text := strings.Join(grants, "\n"); strings.Count(text, ".semel_markers_1") != 2 || !strings.Contains(text, ".semel_markers_1_aside to ") {
			t.Errorf("%s", text)
		}
	})
	t.Run("adopted_tables_are_among_them_if_they_are_named", func(t *testing.T) {
		all, err := owner.store.Grants(t.Context(), role, "public.processed")
		if want := fmt.Sprintf("grant select, insert, delete on public.processed to %q", role); err != nil || len(all) != len(grants)+1 || all[len(grants)] != want {
			t.Errorf("%v, %v", all, err)
		}
	})
	s := useMinimalRole(t, owner, role, db)
	lacking := func() []string {
		warnings, err := s.store.LackingRights(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return warnings
	}
	if all := lacking(); len(all) > 0 || s.store.Check(t.Context()) != nil {
		t.Fatalf("with all grants: %v, %v", all, s.store.Check(t.Context()))
	}
	for _, grant := range grants {
		privileges, rest, _ := strings.Cut(strings.TrimPrefix(grant, "grant "), " on ")
		object, _, _ := strings.Cut(rest, " to ")
		for privilege := range strings.SplitSeq(privileges, ", ") {
			exec(t, s.db, fmt.Sprintf("revoke %s on %s from %s", privilege, object, role))
			all := lacking()
			if remedy := fmt.Sprintf("grant %s on %s to %q", privilege, object, role); len(all) != 1 || !strings.Contains(all[0], "lacks "+privilege+" on "+object) || !strings.HasSuffix(all[0], remedy) {
				t.Errorf("without %s on %s it says %q", privilege, object, all)
			}
			exec(t, s.db, grant)
		}
	}
	t.Run("what_is_not_there_is_refused", func(t *testing.T) {
		_, err := owner.store.Grants(t.Context(), "nobody_of_this_name")
		if err == nil || !strings.Contains(err.Error(), "nobody_of_this_name") {
			t.Errorf("a role that does not exist: %v", err)
		}
		_, err = newUnmigratedStore(t, owner.db, sqlstore.Options{Schema: "nowhere"}).Grants(t.Context(), role)
		sqlsuite.Refused(t, err, "semel migrate up")
	})
}
