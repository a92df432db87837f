// Package planted proves the simulator and the tests: it plants faults in the
// code, one at a time, and sees each of them found by the law that it breaks.
//
// Faults are planted with an overlay: the compiler is given another text of
// some files, and nothing in the tree changes. That text holds every fault, of
// which a variable of the environment switches one on.
package planted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	// Mode is what a seed must have to find it, where that is known; the others are not run.
	Mode simulator.Mode
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

// Tree is the repository with every fault planted and none switched on.
type Tree struct {
	root, folder string
	faults       []Fault
	overlays     map[string]string // by the package that is tested
	built        map[string]string // programs by the package they test
}

// number switches a fault on: it is read from this variable of the environment.
const number = "SEMEL_PLANTED_FAULT"

// Plant plants the faults in the tree at root. What it writes and builds is in
// folder, which has to be empty.
func Plant(root, folder string, faults []Fault) (*Tree, error) {
	t := &Tree{root: root, folder: folder, faults: faults, overlays: map[string]string{}, built: map[string]string{}}
	files := map[string]*schema{}
	for i, f := range faults {
		if err := t.add(files, f, i+1); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return t, t.write(files)
}

func (t *Tree) add(files map[string]*schema, f Fault, number int) error {
	if files[f.File] == nil {
		source, err := os.ReadFile(filepath.Join(t.root, filepath.FromSlash(f.File)))
		if err != nil {
			return err
		}
		if files[f.File], err = newSchema(string(source)); err != nil {
			return err
		}
	}
	return files[f.File].add(f, number)
}

// write writes the changed files, in each of their packages a file with the
// switch, and the overlays that put them into their places.
func (t *Tree) write(files map[string]*schema) error {
	for path, file := range files {
		err := os.WriteFile(t.changed(path), []byte(file.String()), 0o600)
		if err == nil {
			err = os.WriteFile(t.changed(switchBeside(path)), []byte(file.text.switchOf()), 0o600)
		}
		if err != nil {
			return err
		}
	}
	for _, f := range t.faults {
		if t.overlays[f.Package] != "" {
			continue
		}
		t.overlays[f.Package] = filepath.Join(t.folder, fmt.Sprintf("overlay%d.json", len(t.overlays)))
		if err := t.lay(f.Package); err != nil {
			return err
		}
	}
	return nil
}

// lay writes the overlay for the tests of a package: of the changed files those with faults
// that these tests must find. All else is compiled for others, too.
func (t *Tree) lay(pkg string) error {
	replace := map[string]string{}
	for _, f := range t.faults {
		if f.Package == pkg {
			for _, path := range []string{f.File, switchBeside(f.File)} {
				replace[filepath.Join(t.root, filepath.FromSlash(path))] = t.changed(path)
			}
		}
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(t.overlays[pkg], overlay, 0o600)
}

// changed is where the changed text of a file is.
func (t *Tree) changed(path string) string {
	return filepath.Join(t.folder, strings.ReplaceAll(path, "/", "-"))
}

// switchBeside is the file with the switch in the package of another.
func switchBeside(path string) string {
	return filepath.ToSlash(filepath.Join(filepath.Dir(path), "planted_fault.go"))
}

// Build builds what Find runs: the simulator and the tests of faults.
func (t *Tree) Build() error {
	for _, f := range t.faults {
		if t.built[f.Package] != "" {
			continue
		}
		binary := filepath.Join(t.folder, fmt.Sprintf("program%d", len(t.built)))
		args := []string{"build", "-buildvcs=false", "-ldflags=-s -w", "-overlay", t.overlays[f.Package], "-o", binary, "./internal/simulator/simulate"}
		if f.Test != "" {
			args = []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", t.overlays[f.Package], "-o", binary, f.Package}
		}
		if out, failed, err := run(t.root, 0, "go", args...); err != nil || failed {
			return errors.Join(err, fmt.Errorf("with the faults %s does not build: %s", args[len(args)-1], out))
		}
		t.built[f.Package] = binary
	}
	return nil
}

// Find looks for a fault of the tree: with up to so many seeds, or with its
// test. Several may be looked for at once.
func (t *Tree) Find(f Fault, seeds int) (Found, error) {
	number := 1 + slices.Index(t.faults, f)
	look := t.bySeed
	if f.Test != "" {
		look = t.byTest
	}
	found, err := look(f, number, seeds)
	if err != nil {
		return Found{}, fmt.Errorf("%s: %w", f.Name, err)
	}
	return found, nil
}

// bySeed runs seeds until one breaks the fault's law. A seed that breaks a law
// without the fault proves nothing.
func (t *Tree) bySeed(f Fault, number, seeds int) (Found, error) {
	out, _, err := run(t.root, number, t.built[f.Package], "-first", "-law", f.Law, "-seeds", fmt.Sprint(seeds), "-mode", string(f.Mode), "-near", fmt.Sprint(near(f.Name)))
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
func (t *Tree) byTest(f Fault, number, _ int) (Found, error) {
	folder, test := filepath.Join(t.root, f.Package), []string{"-test.run", pattern(f.Test)}
	if out, failed, err := run(folder, 0, t.built[f.Package], test...); err != nil || failed || strings.Contains(out, "no tests to run") {
		return Found{}, errors.Join(err, fmt.Errorf("without the fault %s does not pass: %s", f.Test, out))
	}
	out, failed, err := run(folder, number, t.built[f.Package], test...)
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

// run runs a command in a folder, with the fault of this number switched on; it
// says what was printed, and whether the command failed.
func run(folder string, fault int, name string, args ...string) (out string, failed bool, err error) {
	command := exec.Command(name, args...)
	command.Dir = folder
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", number, fault))
	var text bytes.Buffer
	command.Stdout, command.Stderr = &text, &text
	err = command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return text.String(), true, nil
	}
	return text.String(), false, err
}

// Root returns the folder of the module that the working directory is in.
func Root() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/semel-go/semel").Output()
	if err != nil {
		return "", fmt.Errorf("planted: the module's folder is not found: %w; run this inside the repository", err)
	}
	return strings.TrimSpace(string(out)), nil
}
