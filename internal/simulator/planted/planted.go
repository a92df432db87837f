// Package planted proves the simulator: it plants faults in a copy of the
// machine, one at a time, and counts the seeds it takes to find each.
package planted

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Fault is a change of the machine's text that breaks a law.
type Fault struct {
	Name string
	// File is in internal/machine; Old stands in it once and becomes New.
	File, Old, New string
}

// Found says how a fault was found.
type Found struct {
	Fault Fault
	// Seeds is how many seeds it took, from the first; 0: it was not found.
	Seeds int
	// Law is what was broken.
	Law string
}

// module is where the copy is built: the machine and the simulator need
// nothing else.
const module = "module github.com/semel-go/semel\n\ngo 1.26\n"

// Find plants the fault in a copy of the tree at root and runs up to so many
// seeds. The copy is in folder, which has to be empty.
func Find(root, folder string, f Fault, seeds int) (Found, error) {
	if err := plant(root, folder, f); err != nil {
		return Found{}, fmt.Errorf("%s: %w", f.Name, err)
	}
	command := exec.Command("go", "run", "./internal/simulator/simulate", "-first", "-seeds", fmt.Sprint(seeds))
	command.Dir = folder
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	var answer, trouble bytes.Buffer
	command.Stdout, command.Stderr = &answer, &trouble
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return Found{}, err
	}
	found := Found{Fault: f}
	first, law, _ := strings.Cut(strings.TrimSpace(answer.String()), ": ")
	if _, err := fmt.Sscanf(first, "seed %d", &found.Seeds); err == nil {
		found.Law = law
		return found, nil
	}
	if strings.HasPrefix(first, "none") {
		return found, nil
	}
	return found, fmt.Errorf("%s: the copy does not run: %s%s", f.Name, answer.String(), trouble.String())
}

// plant copies the two packages and changes one file.
func plant(root, folder string, f Fault) error {
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), []byte(module), 0o600); err != nil {
		return err
	}
	for _, part := range []string{"machine", "simulator"} {
		if err := copyPackages(root, folder, filepath.Join("internal", part)); err != nil {
			return err
		}
	}
	path := filepath.Join(folder, "internal", "machine", f.File)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), f.Old); n != 1 {
		return fmt.Errorf("%q stands %d times in internal/machine/%s, and must stand there once; give the fault its new text", f.Old, n, f.File)
	}
	return os.WriteFile(path, []byte(strings.Replace(string(text), f.Old, f.New, 1)), 0o600)
}

// copyPackages copies the Go files below a folder, but no tests.
func copyPackages(root, folder, below string) error {
	return fs.WalkDir(os.DirFS(root), filepath.ToSlash(below), func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return os.MkdirAll(filepath.Join(folder, path), 0o700)
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(folder, path), text, 0o600)
	})
}

// Root returns the folder of the module that the working directory is in.
func Root() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/semel-go/semel").Output()
	if err != nil {
		return "", fmt.Errorf("planted: the module's folder is not found: %w; run this inside the repository", err)
	}
	return strings.TrimSpace(string(out)), nil
}
