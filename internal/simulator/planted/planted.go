// Package planted tests the simulator and the tests: it plants a mistake in the code for each law, one at a time,
// and expects the check of that law to find it. A check that has never failed proves nothing.
//
// A fault names a function and describes the change by the names that the code uses (see package mutation), so
// that it survives other changes of the text. If it can no longer be applied, the error names the function and
// what was looked for.
package planted

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/simulator/plan"

	"github.com/semel-go/semel/internal/simulator"
	"github.com/semel-go/semel/internal/simulator/mutation"
)

// Fault is a mistake in the code that breaks a law, which is an invariant that the simulator checks.
type Fault struct {
	Name string
	// Law is the name of the law that the simulator must find broken. A run that breaks another law does
	// not count as a find.
	Law string
	// In is the folder of the package in the module, Func the name of the function as in mutation.Function, and
	// Edit the change.
	In, Func string
	Edit     mutation.Edit
	// Test, if not empty, is the test in Package that must fail. Without it the simulator must find the fault.
	Test, Package string
	// Mode, if known, is the mode of the seeds that can find the fault; only these seeds are run.
	Mode plan.Mode
}

// Found is the result for a fault.
type Found struct {
	// Seed is the first seed that breaks the fault's law, and breaks no law without the fault; 0 if there is none,
	// or if a test must find the fault.
	Seed uint64
	// How describes how the fault was found; empty if it was not.
	How string
}

// Tree is the repository with all faults planted, none of them switched on.
type Tree struct {
	tree   *mutation.Tree
	faults []Fault
}

// most is the maximum duration of a program with a fault.
const most = 5 * time.Minute

// Plant plants the faults in the tree at root. Plant writes and builds in folder, which must be empty. The
// error names every fault that can no longer be applied.
func Plant(root, folder string, faults []Fault) (*Tree, error) {
	var changes []mutation.Change
	var errs error
	for _, f := range faults {
		c, err := mutation.Find(root, strings.TrimPrefix(f.In+"/*.go", "./"), f.Func, f.Edit)
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("planted fault %q: %w", f.Name, err))
		}
		changes = append(changes, c)
	}
	if errs != nil {
		return nil, errs
	}
	tree, err := mutation.Plant(root, folder, changes)
	return &Tree{tree: tree, faults: faults}, err
}

// Build builds the programs for Find: the simulator and the tests of faults.
func (t *Tree) Build() error {
	for _, f := range t.faults {
		if _, err := t.program(f); err != nil {
			return err
		}
	}
	return nil
}

// program returns the path of the program that must find a fault.
func (t *Tree) program(f Fault) (string, error) {
	if f.Test != "" {
		return t.tree.Test("./" + f.Package)
	}
	return t.tree.Program("./internal/simulator/simulate")
}

// Find looks for a fault: with at most seeds seeds, or with its test. After Build it may be called concurrently.
func (t *Tree) Find(ctx context.Context, f Fault, seeds int) (Found, error) {
	number := 1 + slices.IndexFunc(t.faults, func(other Fault) bool { return other.Name == f.Name })
	program, err := t.program(f)
	if err != nil {
		return Found{}, err
	}
	if f.Test != "" {
		return t.byTest(ctx, f, number, program)
	}
	return t.bySeed(ctx, f, number, program, seeds)
}

// bySeed runs seeds until one breaks the fault's law. A seed that breaks a law without the fault proves nothing.
func (t *Tree) bySeed(ctx context.Context, f Fault, number int, program string, seeds int) (Found, error) {
	ran, err := t.tree.Run(ctx, number, most, ".", program, "-first", "-law", f.Law, "-seeds", fmt.Sprint(seeds), "-mode", string(f.Mode))
	if err != nil {
		return Found{}, err
	}
	var found Found
	first, how, _ := strings.Cut(strings.TrimSpace(ran.Out), ": ")
	if strings.HasPrefix(first, "none") {
		return found, nil
	}
	if _, err := fmt.Sscanf(first, "seed %d", &found.Seed); err != nil {
		return found, fmt.Errorf("the program does not run: %s", ran.Out)
	}
	found.How = how
	return found, clean(found.Seed, simulator.Real)
}

// clean checks that a seed breaks no law without the fault.
func clean(seed uint64, unchanged simulator.Maker) error {
	if r := simulator.Run(seed, unchanged, false); r.Broken != nil {
		return fmt.Errorf("seed %d finds the fault, but also breaks %v without it: fix the code first", seed, r.Broken)
	}
	return nil
}

// byTest runs the fault's test, which must fail with the fault and pass without it.
func (t *Tree) byTest(ctx context.Context, f Fault, number int, program string) (Found, error) {
	test := []string{"-test.run", "^" + strings.ReplaceAll(f.Test, "/", "$/^") + "$"}
	ran, err := t.tree.Run(ctx, 0, most, f.Package, program, test...)
	if err != nil || ran.Failed || strings.Contains(ran.Out, "no tests to run") {
		return Found{}, errors.Join(err, fmt.Errorf("without the fault %s does not pass: %s", f.Test, ran.Out))
	}
	ran, err = t.tree.Run(ctx, number, most, f.Package, program, test...)
	switch {
	case err != nil || !ran.Failed:
		return Found{}, err
	case !strings.Contains(ran.Out, "--- FAIL: "+f.Test):
		return Found{}, fmt.Errorf("%s does not end: %s", f.Test, ran.Out)
	}
	return Found{How: f.Law + ": " + f.Test}, nil
}
