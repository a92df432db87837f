// Package history extracts source trees and binaries from the history of this repository. Tests run these trees and
// binaries beside the current tree: as an older release in the same fleet, or as the base of a comparison.
package history

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Unpack writes the source tree of a commit into an existing folder. The working directory may be anywhere in
// a clone.
func Unpack(ctx context.Context, commit, folder string) error {
	if _, err := Output(exec.CommandContext(ctx, "git", "cat-file", "-e", commit+"^{commit}")); err != nil {
		return fmt.Errorf("commit %s is not here; if its name is right, "+
			"this needs the repository's history. Get it with `git fetch --unshallow`, or with `git fetch --tags` "+
			"in a whole clone; instead of an unpacked archive use a clone: %w", commit, err)
	}
	root, err := Root(ctx)
	if err != nil {
		return err
	}
	archive := filepath.Join(folder, "tree.tar")
	if _, err := Output(exec.CommandContext(ctx, "git", "-C", root, "archive", "--output", archive, commit)); err != nil {
		return err
	}
	_, err = Output(exec.CommandContext(ctx, "tar", "-x", "-f", archive, "-C", folder))
	return err
}

// Root returns the top folder of the clone that contains the working directory.
func Root(ctx context.Context) (string, error) {
	return Output(exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel"))
}

// Commit returns the abbreviated hash of a commit. If name is empty, the result is the hash of the current commit, with
// "-dirty" if files have changed.
func Commit(ctx context.Context, name string) (string, error) {
	if name == "" {
		return Output(exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*"))
	}
	return Output(exec.CommandContext(ctx, "git", "rev-parse", "--short", "--verify", name+"^{commit}"))
}

// Go runs the go command in a source tree, with the workspace of the tree. The compiled packages do not contain the
// path of the tree, so all trees share the build cache.
func Go(ctx context.Context, tree, verb string, args ...string) error {
	call := exec.CommandContext(ctx, "go", append([]string{verb, "-trimpath", "-buildvcs=false"}, args...)...)
	call.Dir, call.Env = tree, append(os.Environ(), "GOWORK="+filepath.Join(tree, "go.work"))
	_, err := Output(call)
	return err
}

// Output runs a command and returns its standard output without surrounding blanks. An error contains the
// command's standard error.
func Output(c *exec.Cmd) (string, error) {
	var said strings.Builder
	c.Stderr = &said
	printed, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, said.String())
	}
	return strings.TrimSpace(string(printed)), nil
}
