//go:build unix

package steps

import (
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/store"
)

func TestStepsOfTheFrozen(t *testing.T) {
	for _, c := range []struct {
		what, store string
		point       faults.Point
		leased      bool
	}{
		{"before_its_commit/postgres", "postgres", faults.BeforeCommit, false},
		{"before_its_commit/pgxstore", "pgxstore", faults.BeforeCommit, false},
		{"before_its_commit/pgxstore_queue", "pgxstore_queue", faults.BeforeCommit, false},
		// In a database with one writer, an open transaction blocks all other writers. The process is therefore frozen
		// at a point at which it has no open transaction.
		{"before_its_end/sqlite", "sqlite", faults.BeforeCommit, true},
		{"before_its_end/postgres", "postgres", faults.BeforeCommit, true},
	} {
		t.Run("C11_law_5_frozen_past_its_lease_its_late_step_changes_nothing_"+c.what, func(t *testing.T) {
			where, db, rows := place(t, c.store)
			// The third batch of the frozen process runs the step "charge". The step "reserve" is done.
			frozen := startChild(t, order{Store: c.store, Where: where, Point: c.point, N: 3, Consumers: []string{"orders"}, Leased: c.leased, Who: "frozen"})
			if err := frozen.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			if r, done := row(t, rows, "orders"); done != 1 || r.State != store.StateInProgress {
				t.Fatalf("it is frozen with %d steps done, and its row is %s", done, r.State)
			}
			finish(t, order{Store: c.store, Where: where, Consumers: []string{"orders"}, Leased: c.leased, Who: "next"}, rows)
			before, done := row(t, rows, "orders")
			if done != len(names) || before.State != store.StateCompleted {
				t.Fatalf("the next process left it %s with %d steps done", before.State, done)
			}
			if err := frozen.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			_ = frozen.stdin.Close() // the process continues
			// The process lost the claim of "charge", or failed to release this claim when it ended.
			if said := frozen.end(t); !strings.Contains(said, "{Claimed:2 Applied:0 ") || !strings.Contains(said, " Stepped:1 ") {
				t.Errorf("it has ended a step that was another's: %q", said)
			}
			if after, _ := row(t, rows, "orders"); !reflect.DeepEqual(before, after) {
				t.Errorf("the row was\n%+v\nand is\n%+v", before, after)
			}
			want := map[string][]string{"reserve": {"frozen"}, "charge": {"next"}, "ship": {"next"}}
			if c.leased { // a step without a transaction keeps its effect, although the step is not recorded
				want["charge"] = []string{"frozen", "next"}
			}
			if got := readEffects(t, db, "orders"); !reflect.DeepEqual(got, want) {
				t.Errorf("effects for %v, want %v", got, want)
			}
		})
	}
}
