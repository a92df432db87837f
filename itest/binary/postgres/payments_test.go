//go:build unix

package postgres

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/services"
)

// summary is the output of `semel run -o json`.
type summary struct {
	Consumers map[string]counts
}

// counts contains the counts of a consumer by name, without the counts of the inbox.
type counts map[string]int

func (c *counts) UnmarshalJSON(text []byte) error {
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	*c = counts{}
	for name, value := range all {
		if n, ok := value.(float64); ok {
			(*c)[name] = int(n)
		}
	}
	return nil
}

// row is one row in the output of `semel messages ls -o json`, without times and error texts.
type row struct {
	Number   int64
	State    string
	Reason   string
	Source   string
	ID       string
	Conflict bool
	Repeated int
	Offset   int64
}

func (s fixture) listParked(t *testing.T, policy string, filters ...string) []row {
	t.Helper()
	var list struct{ Rows []row }
	s.runJSON(t, &list, append([]string{"messages", "ls", "-o", "json", "--config", policy}, filters...)...)
	return list.Rows
}

func TestThePaymentsOfTheExampleIntoPostgreSQL(t *testing.T) {
	s := example(t, services.Postgres(t))
	var postgres summary
	s.runJSON(t, &postgres, "run", "-o", "json", "--config", "postgres.yaml")
	if n := postgres.Consumers["billing"]["applied"]; n != 7500 {
		t.Errorf("%d are applied", n)
	}
	t.Run("it_ends_as_in_SQLite", func(t *testing.T) { sameAsSQLite(t, s, postgres) })
	t.Run("the_balances_are_those_of_the_reference", func(t *testing.T) { sameAsReference(t, s) })
	t.Run("another_run_applies_nothing", func(t *testing.T) {
		var again summary
		s.runJSON(t, &again, "run", "-o", "json", "--config", "postgres.yaml")
		if counts := again.Consumers["billing"]; counts["applied"] != 0 || counts["deliveries"] != 0 {
			t.Errorf("%v", counts)
		}
	})
	t.Run("set_aside_messages_are_retried_and_discarded", func(t *testing.T) { actOnParked(t, s) })
}

// sameAsSQLite runs the same policy with SQLite, and compares the counts (except reruns) and the parked rows.
func sameAsSQLite(t *testing.T, s fixture, postgres summary) {
	var sqlite summary
	s.runJSON(t, &sqlite, "run", "-o", "json", "--config", "semel.yaml")
	for name, n := range sqlite.Consumers["billing"] {
		if got := postgres.Consumers["billing"][name]; got != n && name != "rerun" {
			t.Errorf("%s: %d in PostgreSQL, %d in SQLite", name, got, n)
		}
	}
	got, want := fmt.Sprint(s.listParked(t, "postgres.yaml")), fmt.Sprint(s.listParked(t, "semel.yaml"))
	if got != want {
		t.Errorf("set aside in PostgreSQL:\n%s\nin SQLite:\n%s", got, want)
	}
}

func sameAsReference(t *testing.T, s fixture) {
	cmd := exec.CommandContext(t.Context(), "go", "run", "./examples/payments/reference")
	cmd.Dir = "../../.."
	want, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := queryOne[string](t, s.dsn, `select string_agg(id || '|' || balance, E'\n' order by id) from accounts`)
	if got != strings.TrimSpace(string(want)) {
		t.Errorf("balances:\n%s\nwant:\n%s", got, want)
	}
}

func actOnParked(t *testing.T, s fixture) {
	unknown := s.listParked(t, "postgres.yaml", "--reason", "condition unmet")
	if len(unknown) < 2 {
		t.Fatalf("%d payments for unknown accounts", len(unknown))
	}
	retried, discarded := unknown[0], unknown[1]
	count := func() int {
		return queryOne[int](t, s.dsn, `select count(*) from entries where payment = $1`, retried.ID)
	}
	number := fmt.Sprint(retried.Number)
	if r := s.semel(t, "messages", "retry", "--run", number, "--because", "early", "--config", "postgres.yaml"); r.code != 1 || count() != 0 {
		t.Errorf("a retry that fails again ended with %d: %s", r.code, r.errors)
	}
	addAccount(t, s, number)
	var acts struct{ Failed int }
	s.runJSON(t, &acts, "messages", "retry", "--run", number, "--because", "the account is there", "--config", "postgres.yaml", "-o", "json")
	s.runJSON(t, &acts, "messages", "discard", fmt.Sprint(discarded.Number), "--because", "a test", "--config", "postgres.yaml", "-o", "json")
	if n := count(); n != 1 {
		t.Errorf("%d effects of the retried payment", n)
	}
	if left := s.listParked(t, "postgres.yaml", "--reason", "condition unmet"); len(left) != len(unknown)-2 {
		t.Errorf("%d are left of %d", len(left), len(unknown))
	}
}

// addAccount creates the account whose absence caused a payment to be parked.
func addAccount(t *testing.T, s fixture, number string) {
	t.Helper()
	var shown struct{ Payload string }
	s.runJSON(t, &shown, "messages", "show", number, "--payload", "-o", "json", "--config", "postgres.yaml")
	var payment struct{ Account string }
	if err := json.Unmarshal([]byte(shown.Payload), &payment); err != nil || payment.Account == "" {
		t.Fatalf("payload %s: %v", shown.Payload, err)
	}
	services.Exec(t, s.dsn, fmt.Sprintf(`insert into accounts values ('%s', 0)`, payment.Account))
}
