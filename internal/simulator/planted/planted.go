// Package planted proves the simulator and the tests: it plants a mistake in
// the code for each law, one at a time, and expects the law's own check to
// find it. A check that has never failed proves nothing.
//
// A fault names a function and what is changed there by the names that the
// code uses (see package mutation), so it survives new text around it. If it no
// longer applies, the test says which function it looked at and for what.
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

// Fault is a mistake that breaks a law.
type Fault struct {
	Name string
	// Law is what must be seen broken; another law does not count.
	Law string
	// In is the folder of the package in the module, Func the function as mutation.Function names
	// it, and Edit what is changed there.
	In, Func string
	Edit     mutation.Edit
	// Test, if not empty, is the test that must fail, in Package. Without it the
	// simulator must find the fault.
	Test, Package string
	// Mode is what a seed must have to find it, where that is known; the others are not run.
	Mode plan.Mode
}

// Found says how a fault was found.
type Found struct {
	// Seed is the first seed that breaks the fault's law, and keeps all laws
	// without the fault; 0: none was found, or a test must find it.
	Seed uint64
	// How is what was seen broken; empty: the fault was not found.
	How string
}

// Tree is the repository with every fault planted and none switched on.
type Tree struct {
	tree   *mutation.Tree
	faults []Fault
}

// most is how long a program with a fault may run.
const most = 5 * time.Minute

// Plant plants the faults in the tree at root. What it writes and builds is in
// folder, which has to be empty. The error names every fault that does not
// apply any more.
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

// Build builds what Find runs: the simulator and the tests of faults.
func (t *Tree) Build() error {
	for _, f := range t.faults {
		if _, err := t.program(f); err != nil {
			return err
		}
	}
	return nil
}

// program is the path of the program that must find a fault.
func (t *Tree) program(f Fault) (string, error) {
	if f.Test != "" {
		return t.tree.Test("./" + f.Package)
	}
	return t.tree.Program("./internal/simulator/simulate")
}

// Find looks for a fault of the tree: with up to so many seeds, or with its
// test. After Build, several may be looked for at once.
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

// bySeed runs seeds until one breaks the fault's law. A seed that breaks a law
// without the fault proves nothing.
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
		return found, fmt.Errorf("it does not run: %s", ran.Out)
	}
	found.How = how
	return found, clean(found.Seed, simulator.Real)
}

// clean sees that a seed keeps all laws without the fault.
func clean(seed uint64, unchanged simulator.Maker) error {
	if r := simulator.Run(seed, unchanged, false); r.Broken != nil {
		return fmt.Errorf("seed %d finds it, and breaks %v without it, too: mend the code first", seed, r.Broken)
	}
	return nil
}

// byTest runs the fault's test, which must fail with it and pass without.
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
		return Found{}, fmt.Errorf("%s does not run to its end: %s", f.Test, ran.Out)
	}
	return Found{How: f.Law + ": " + f.Test}, nil
}
