package postgresfaults

import (
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestRowSecurityOnSemelsTables(t *testing.T) {
	_, dsn := withRole(t)
	db := look(t, migrateDatabase(t, dsn))
	st, err := sqlstore.Postgres(db, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	scope, err := st.Scope(t.Context(), "billing", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	const remedy = `alter table "public".semel_markers disable row level security`
	refused := func(t *testing.T) {
		t.Helper()
		if err := st.Check(t.Context()); !errors.Is(err, semel.ErrSchema) || !strings.Contains(err.Error(), remedy) {
			t.Errorf("got %v, want ErrSchema and %q", err, remedy)
		}
	}
	exec(t, db, "alter table semel_markers enable row level security")
	t.Run("trap_T98_row_security_that_does_not_apply_to_the_role_is_let_alone", func(t *testing.T) {
		if err := st.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
	exec(t, db, "alter table semel_markers force row level security")
	t.Run("trap_T98_row_security_that_applies_is_found_before_the_start", refused)
	t.Run("a_mark_that_row_security_refuses_is_not_taken_for_a_missing_grant", func(t *testing.T) {
		_, _, err := st.Begin(t.Context(), store.TxOptions{}, []store.Mark{{Scope: scope, ID: []byte("a"), As: store.Applied}})
		if err == nil || st.Classify(err) != store.ClassDown {
			t.Fatalf("got %v, want a failure of the store", err)
		}
		if !strings.Contains(err.Error(), remedy) || strings.Contains(err.Error(), "grant the role") {
			t.Errorf("%v does not say %q, or speaks of grants", err, remedy)
		}
		if advice := sqlstore.Remedy(err, true); !strings.Contains(advice, "row-level security") {
			t.Errorf("other drivers are told %q", advice)
		}
	})
	exec(t, db, "create policy part on semel_markers using (outcome = 1)")
	t.Run("trap_T98_a_policy_that_hides_rows_is_found", refused)
	exec(t, db, "create policy everything on semel_markers using (true)")
	t.Run("trap_T98_a_policy_that_lets_everything_through_is_let_alone", func(t *testing.T) {
		if err := st.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
	exec(t, db, "create policy never on semel_markers as restrictive using (outcome = 1)")
	t.Run("trap_T98_a_restrictive_policy_beside_it_is_found", refused)
}
