package mutation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// envVariable is the name of the environment variable that switches a change on.
const envVariable = "SEMEL_MUTANT"

// switchFile is the name of a file that is added to each changed package and reads the environment variable number.
const switchFile = "semel_mutant.go"

// mostMemory is the largest address space of a changed program, in KiB. Without a limit, an endless loop could
// use all memory of the machine.
const mostMemory = 6 << 20

// Tree is the module with planted changes, none of which is switched on.
type Tree struct {
	root, folder string
	changes      []Change
	overlay      string
	programs     map[string]string // paths of built programs; the key is the kind of build and the package
}

// Plant writes the changed files of the module at root to folder, which must be empty.
func Plant(root, folder string, changes []Change) (*Tree, error) {
	t := &Tree{root: root, folder: folder, changes: changes, overlay: filepath.Join(folder, "overlay.json"), programs: map[string]string{}}
	return t, t.write()
}

// write writes the changed files, the switches, and the overlay that replaces the originals.
func (t *Tree) write() error {
	changed, files := map[string][]numbered{}, map[string]*file{}
	for i, c := range t.changes {
		f := c.Fn.file
		changed[f.path], files[f.path] = append(changed[f.path], numbered{c, i + 1}), f
	}
	replace := map[string]string{}
	put := func(inModule, text string) error {
		written := filepath.Join(t.folder, strings.ReplaceAll(inModule, "/", "-"))
		replace[filepath.Join(t.root, filepath.FromSlash(inModule))] = written
		return os.WriteFile(written, []byte(text), 0o600)
	}
	for name, f := range files {
		err := put(name, schemaOf(f, changed[name]))
		if err == nil {
			err = put(path.Join(path.Dir(name), switchFile), switchOf(f.tree.Name.Name))
		}
		if err != nil {
			return err
		}
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(t.overlay, overlay, 0o600)
}

func switchOf(pkg string) string {
	return "package " + pkg + `

import (
	"os"
	"strconv"
)

var semelMutant, _ = strconv.Atoi(os.Getenv("` + envVariable + `"))
`
}

// Program builds the package of a command with all changes, and returns the path of the program. Each package
// is built only once.
func (t *Tree) Program(pkg string) (string, error) {
	return t.build(pkg, "build", "-buildvcs=false")
}

// Test builds the tests of a package with all changes, and returns the path of the program.
func (t *Tree) Test(pkg string) (string, error) { return t.build(pkg, "test", "-c", "-vet=off") }

func (t *Tree) build(pkg string, command ...string) (string, error) {
	key := command[0] + " " + pkg
	if t.programs[key] != "" {
		return t.programs[key], nil
	}
	binary := filepath.Join(t.folder, fmt.Sprintf("program%d", len(t.programs)))
	out, err := t.compile(slices.Concat(command, []string{"-ldflags=-s -w", "-overlay", t.overlay, "-o", binary, pkg})...)
	if err != nil {
		return "", fmt.Errorf("mutation: %s with the changes does not build: %w: %s", pkg, err, t.explain(out))
	}
	t.programs[key] = binary
	return binary, nil
}

func (t *Tree) compile(args ...string) (string, error) {
	command := exec.Command("go", args...)
	command.Dir = t.root
	out, err := command.CombinedOutput()
	return string(out), err
}

// inMutant finds the number of a change in a compiler error.
var inMutant = regexp.MustCompile(`\bmutant(\d+):\d+`)

// explain replaces the numbers of changes in compiler errors by descriptions of the changes.
func (t *Tree) explain(out string) string {
	return inMutant.ReplaceAllStringFunc(out, func(place string) string {
		n, _ := strconv.Atoi(inMutant.FindStringSubmatch(place)[1])
		if n < 1 || n > len(t.changes) {
			return place
		}
		return t.changes[n-1].String()
	})
}

// Compiling returns the changes that compile. Compiling writes files to folder, which must be empty.
func Compiling(root, folder string, changes []Change) ([]Change, error) {
	for len(changes) > 0 {
		t, err := Plant(root, folder, changes)
		if err != nil {
			return nil, err
		}
		args := []string{"build", "-gcflags=-e", "-overlay", t.overlay}
		for _, c := range changes {
			if pkg := "./" + c.Fn.folder(); !slices.Contains(args, pkg) {
				args = append(args, pkg)
			}
		}
		out, err := t.compile(args...)
		if err == nil {
			return changes, nil
		}
		wrong := map[int]bool{}
		for _, m := range inMutant.FindAllStringSubmatch(out, -1) {
			n, _ := strconv.Atoi(m[1])
			wrong[n] = true
		}
		if len(wrong) == 0 {
			return nil, fmt.Errorf("mutation: the changed packages do not build: %w: %s", err, out)
		}
		var kept []Change
		for i, c := range changes {
			if !wrong[i+1] {
				kept = append(kept, c)
			}
		}
		changes = kept
	}
	return changes, nil
}

// Ran is the result of a run of a program.
type Ran struct {
	Out string
	// Failed is true if the exit code was not 0, or if the program did not end in time.
	Failed, TimedOut bool
}

// Switch returns the entry NAME=VALUE of the environment that switches on the planted change with the given number. The
// first planted change has number 1; number 0 switches on no change.
func Switch(change int) string { return fmt.Sprintf("%s=%d", envVariable, change) }

// Run runs a program in a folder of the module, with one planted change switched on (see Switch). The program is killed
// after the timeout.
func (t *Tree) Run(ctx context.Context, change int, timeout time.Duration, folder, program string, args ...string) (Ran, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	limited := fmt.Sprintf(`ulimit -v %d; exec "$@"`, mostMemory)
	command := exec.CommandContext(ctx, "sh", slices.Concat([]string{"-c", limited, "sh", program}, args)...)
	command.Dir = filepath.Join(t.root, filepath.FromSlash(folder))
	command.Env = append(os.Environ(), Switch(change))
	command.WaitDelay = time.Second
	var text bytes.Buffer
	command.Stdout, command.Stderr = &text, &text
	err := command.Run()
	var exit *exec.ExitError
	if ctx.Err() != nil || errors.As(err, &exit) || errors.Is(err, exec.ErrWaitDelay) {
		return Ran{Out: text.String(), Failed: true, TimedOut: ctx.Err() != nil}, nil
	}
	return Ran{Out: text.String()}, err
}

// Root returns the folder of the module that contains the working directory.
func Root() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/semel-go/semel").Output()
	if err != nil {
		return "", fmt.Errorf("mutation: the module's folder is not found: %w; run this inside the repository", err)
	}
	return strings.TrimSpace(string(out)), nil
}
