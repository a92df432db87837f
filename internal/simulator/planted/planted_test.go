package planted

import (
	"testing"
)

func root(t *testing.T) string {
	t.Helper()
	folder, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestEveryFaultCanBePlanted(t *testing.T) {
	for _, f := range Faults() {
		if err := plant(root(t), t.TempDir(), f); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}

// The first ten are run here; make planted runs all.
func TestTenPlantedFaultsAreFound(t *testing.T) {
	for _, f := range Faults()[:10] {
		t.Run(f.Name, func(t *testing.T) {
			found, err := Find(root(t), t.TempDir(), f, 2000)
			switch {
			case err != nil:
				t.Fatal(err)
			case found.Seeds == 0:
				t.Error("2000 seeds do not find it")
			}
			t.Logf("found in seed %d: %s", found.Seeds, found.Law)
		})
	}
}

func TestAFaultWithAnotherTextIsRefused(t *testing.T) {
	if err := plant(root(t), t.TempDir(), Fault{File: "stop.go", Old: "no such text"}); err == nil {
		t.Error("a fault that changes nothing was planted")
	}
}
