package planted

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator"
	"github.com/semel-go/semel/internal/simulator/mutation"
	"github.com/semel-go/semel/internal/simulator/trace"
)

func root(t *testing.T) string {
	t.Helper()
	folder, err := mutation.Root()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestPlantedFaults(t *testing.T) {
	tree, err := Plant(root(t), t.TempDir(), Faults())
	if err == nil {
		err = tree.Build()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Run("trap_T108_each_is_found_by_its_own_law_where_all_laws_hold_without_it", func(t *testing.T) {
		for _, f := range Faults() {
			t.Run(f.Name, func(t *testing.T) {
				t.Parallel()
				found, err := tree.Find(t.Context(), f, 3000)
				switch {
				case err != nil:
					t.Fatal(err)
				case found.How == "":
					t.Errorf("no seed and no test finds that it breaks %s", f.Law)
				}
				t.Logf("found in seed %d: %s", found.Seed, found.How)
			})
		}
	})
	t.Run("trap_T108_a_seed_that_breaks_a_law_without_the_fault_proves_nothing", func(t *testing.T) {
		if err := clean(1, func(machine.Config) simulator.Stepper { return idle{} }); err == nil {
			t.Error("it counts")
		}
	})
}

func TestEachLawThatTheSimulatorChecksHasAFault(t *testing.T) {
	t.Run("trap_T108_a_check_that_no_fault_fails_proves_nothing", func(t *testing.T) {
		has := map[string]bool{}
		for _, f := range Faults() {
			has[f.Law] = true
		}
		laws := trace.Laws()
		for _, law := range laws {
			if !has[law] {
				t.Errorf("no fault breaks %s; plant one", law)
			}
		}
		if len(laws) < 40 {
			t.Errorf("the simulator names only %d laws", len(laws))
		}
	})
}

// idle is a machine that does nothing.
type idle struct{}

func (idle) Step(machine.Event, machine.Time) []machine.Action { return nil }
func (idle) Counts() machine.Counts                            { return machine.Counts{} }
func (idle) Unsettled() (int, int64)                           { return 0, 0 }
func (idle) Size() machine.Size                                { return machine.Size{} }

func TestAFaultThatDoesNotApplyIsRefusedAndNamed(t *testing.T) {
	for want, f := range map[string]Fault{
		"internal/machine/*.go has no function (*Machine).nobody":                       {Name: "of nobody", In: "internal/machine", Func: "(*Machine).nobody", Edit: mutation.Return("")},
		"(*Machine).commit has 0 places to change, not 1: a statement that uses nobody": {Name: "of nothing", In: "internal/machine", Func: "(*Machine).commit", Edit: mutation.Delete("nobody")},
	} {
		_, err := Plant(root(t), t.TempDir(), []Fault{f})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), f.Name) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}
