// Package planted checks the simulator and the tests. For each law, package planted makes a mistake in the code, one at
// a time, and expects that the check of that law finds the mistake. Without planted mistakes, it would be unknown
// whether a check can fail.
//
// A fault names a function and describes the change by the names that the code uses (see package mutation), so that the
// fault still works after other changes of the text. If a fault can no longer be planted, the error names the function
// and the names that were not found in it.
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
	// Law is the law that the fault breaks. If a run breaks another law, the fault does not count as found.
	Law string
	// In is the folder of the package in the module. Func is the name of the function, as in
	// mutation.Function. Edit is the change.
	In, Func string
	Edit     mutation.Edit
	// Test, if not empty, is the test in Package that must fail. If Test is empty, the simulator must find the
	// fault.
	Test, Package string
	// Mode, if not empty, limits the search to seeds of one mode.
	Mode plan.Mode
}

// Found is the result of the search for one fault.
type Found struct {
	// Seed is the first seed for which the program with the fault breaks the fault's law, and the program without the
	// fault breaks no law. If there is no such seed, or if the fault was found by a test and not by a seed, Seed is 0.
	Seed uint64
	// How describes how the fault was found, or is "" if the fault was not found.
	How string
}

// Tree is the repository with all faults planted, none of which is switched on.
type Tree struct {
	tree   *mutation.Tree
	faults []Fault
}

// runTimeout is the longest duration of a program with a fault.
const runTimeout = 5 * time.Minute

// Plant plants the faults in the tree at root. Plant writes files and builds programs in folder, which must be empty.
// The error names every fault that could not be planted.
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

// Build builds the programs that Find needs: the simulator and the tests.
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

// Find searches for a fault with the fault's test or, if it has none, with at most the given number of seeds. After
// Build, several calls may run at the same time.
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

// bySeed runs seeds until a seed breaks the fault's law. A seed that also breaks a law without the fault proves
// nothing.
func (t *Tree) bySeed(ctx context.Context, f Fault, number int, program string, seeds int) (Found, error) {
	ran, err := t.tree.Run(ctx, number, runTimeout, ".", program, "-first", "-law", f.Law, "-seeds", fmt.Sprint(seeds), "-mode", string(f.Mode))
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

// clean returns an error if a seed breaks a law without the fault.
func clean(seed uint64, unchanged simulator.Maker) error {
	if r := simulator.Run(seed, unchanged, false); r.Broken != nil {
		return fmt.Errorf("seed %d finds the fault, but also breaks %v without it: fix the code first", seed, r.Broken)
	}
	return nil
}

// byTest runs the test of the fault. The test must fail with the fault and pass without the fault.
func (t *Tree) byTest(ctx context.Context, f Fault, number int, program string) (Found, error) {
	test := []string{"-test.run", "^" + strings.ReplaceAll(f.Test, "/", "$/^") + "$"}
	ran, err := t.tree.Run(ctx, 0, runTimeout, f.Package, program, test...)
	if err != nil || ran.Failed || strings.Contains(ran.Out, "no tests to run") {
		return Found{}, errors.Join(err, fmt.Errorf("without the fault %s does not pass: %s", f.Test, ran.Out))
	}
	ran, err = t.tree.Run(ctx, number, runTimeout, f.Package, program, test...)
	switch {
	case err != nil || !ran.Failed:
		return Found{}, err
	case !strings.Contains(ran.Out, "--- FAIL: "+f.Test):
		return Found{}, fmt.Errorf("%s does not end: %s", f.Test, ran.Out)
	}
	return Found{How: f.Law + ": " + f.Test}, nil
}
