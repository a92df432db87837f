package planted

import (
	"flag"
	"os"
	"sync"
	"testing"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator"
)

var update = flag.Bool("update", false, "write near.txt anew, with the seeds that find the faults now")

func root(t *testing.T) string {
	t.Helper()
	folder, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestEveryFaultCanBePlanted(t *testing.T) {
	if _, err := Plant(root(t), t.TempDir(), Faults()); err != nil {
		t.Error(err)
	}
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
		var lock sync.Mutex // guards all
		var all []Found
		t.Cleanup(func() {
			if *update && !t.Failed() {
				if err := os.WriteFile("near.txt", []byte(nearLines(all)), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
		for _, f := range Faults() {
			t.Run(f.Name, func(t *testing.T) {
				t.Parallel()
				found := isFound(t, tree, f)
				lock.Lock()
				defer lock.Unlock()
				all = append(all, found)
			})
		}
	})
	t.Run("trap_T108_a_seed_that_breaks_a_law_without_the_fault_proves_nothing", func(t *testing.T) {
		if err := clean(1, func(machine.Config) simulator.Stepper { return idle{} }); err == nil {
			t.Error("it counts")
		}
	})
}

// idle is a machine that does nothing.
type idle struct{}

func (idle) Step(machine.Event, machine.Time) []machine.Action { return nil }
func (idle) Counts() machine.Counts                            { return machine.Counts{} }
func (idle) Unsettled() (int, int64)                           { return 0, 0 }
func (idle) Size() machine.Size                                { return machine.Size{} }

func isFound(t *testing.T, tree *Tree, f Fault) Found {
	t.Helper()
	found, err := tree.Find(f, 6000)
	switch {
	case err != nil:
		t.Fatal(err)
	case found.How == "":
		t.Errorf("nothing shows that it breaks %s", f.Law)
	}
	t.Logf("found in seed %d: %s", found.Seed, found.How)
	return found
}

func TestAFaultWithAnotherTextIsRefused(t *testing.T) {
	f := Fault{File: "internal/machine/stop.go", Old: "no such text"}
	if _, err := Plant(root(t), t.TempDir(), []Fault{f}); err == nil {
		t.Error("a fault that changes nothing was planted")
	}
}
