// Package planted proves the simulator and the tests: it plants faults in the
// code, one at a time, and sees each of them found by the law that it breaks.
//
// A fault is planted with an overlay: the compiler is given another text of one
// file, and nothing in the tree changes.
package planted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/semel-go/semel/internal/simulator"
)

// Fault is a change of the code's text that breaks a law.
type Fault struct {
	Name string
	// Law is what must be seen broken; another law does not count.
	Law string
	// File is a path in the module; Old stands in it once and becomes New.
	File, Old, New string
	// Test, if not empty, is the test that must fail, in Package, a folder of
	// the module. Without it the simulator must find the fault.
	Test, Package string
}

// Found says how a fault was found.
type Found struct {
	Fault Fault
	// Seed is the first seed that breaks the fault's law, and keeps all laws
	// without the fault; 0: none was found, or a test must find it.
	Seed uint64
	// How is what was seen broken; empty: the fault was not found.
	How string
}

// Find plants the fault in the tree at root and looks for it: with up to so
// many seeds, or with its test. What it builds is in folder, which has to be
// empty.
func Find(root, folder string, f Fault, seeds int) (Found, error) {
	overlay, err := plant(root, folder, f)
	if err != nil {
		return Found{}, fmt.Errorf("%s: %w", f.Name, err)
	}
	look := bySeed
	if f.Test != "" {
		look = byTest
	}
	found, err := look(root, folder, overlay, f, seeds)
	if err != nil {
		return Found{}, fmt.Errorf("%s: %w", f.Name, err)
	}
	return found, nil
}

// bySeed runs seeds until one breaks the fault's law. A seed that breaks a law
// without the fault proves nothing.
func bySeed(root, folder, overlay string, f Fault, seeds int) (Found, error) {
	binary := filepath.Join(folder, "simulate")
	if out, failed, err := run(root, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "./internal/simulator/simulate"); err != nil || failed {
		return Found{}, errors.Join(err, fmt.Errorf("it does not build: %s", out))
	}
	out, _, err := run(root, binary, "-first", "-law", f.Law, "-seeds", fmt.Sprint(seeds))
	if err != nil {
		return Found{}, err
	}
	found := Found{Fault: f}
	first, how, _ := strings.Cut(strings.TrimSpace(out), ": ")
	if strings.HasPrefix(first, "none") {
		return found, nil
	}
	if _, err := fmt.Sscanf(first, "seed %d", &found.Seed); err != nil {
		return found, fmt.Errorf("it does not run: %s", out)
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
func byTest(root, _, overlay string, f Fault, _ int) (Found, error) {
	if out, failed, err := run(root, "go", "test", "-run", pattern(f.Test), f.Package); err != nil || failed || strings.Contains(out, "no tests to run") {
		return Found{}, errors.Join(err, fmt.Errorf("without the fault %s does not pass: %s", f.Test, out))
	}
	out, failed, err := run(root, "go", "test", "-overlay", overlay, "-run", pattern(f.Test), f.Package)
	if err != nil {
		return Found{}, err
	}
	found := Found{Fault: f}
	if !failed {
		return found, nil
	}
	if !strings.Contains(out, "--- FAIL: "+f.Test) {
		return found, fmt.Errorf("%s does not run to its end: %s", f.Test, out)
	}
	found.How = f.Law + ": " + f.Test
	return found, nil
}

// pattern is -run's form of one test's whole name.
func pattern(test string) string {
	return "^" + strings.ReplaceAll(test, "/", "$/^") + "$"
}

// run runs a command in the tree; it says what was printed, and whether the
// command failed.
func run(root, name string, args ...string) (out string, failed bool, err error) {
	command := exec.Command(name, args...)
	command.Dir = root
	command.Env = append(os.Environ(), "GOFLAGS=")
	var text bytes.Buffer
	command.Stdout, command.Stderr = &text, &text
	err = command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return text.String(), true, nil
	}
	return text.String(), false, err
}

// plant writes the changed file and the overlay that puts it into its place,
// and returns the overlay's path.
func plant(root, folder string, f Fault) (string, error) {
	place := filepath.Join(root, filepath.FromSlash(f.File))
	text, err := os.ReadFile(place)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), f.Old); n != 1 {
		return "", fmt.Errorf("%q stands %d times in %s, and must stand there once; give the fault its new text", f.Old, n, f.File)
	}
	changed := filepath.Join(folder, "changed.go")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), f.Old, f.New, 1)), 0o600); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {place: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}

// Root returns the folder of the module that the working directory is in.
func Root() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/semel-go/semel").Output()
	if err != nil {
		return "", fmt.Errorf("planted: the module's folder is not found: %w; run this inside the repository", err)
	}
	return strings.TrimSpace(string(out)), nil
}
