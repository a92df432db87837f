//go:build unix

package replay

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// semel is a command of the binary with the policy, for machines to read; what it printed.
// An exit code of 4 or 1 says that something is left, which the caller looks for.
func (r *run) semel(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, r.Binary, slices.Concat(args, []string{"--config", policyFile, "--json"})...)
	cmd.Dir, cmd.Env = r.Folder, append(cmd.Environ(), r.environment("operator")...)
	var errors strings.Builder
	cmd.Stderr = &errors
	said, err := cmd.Output()
	if err != nil {
		return string(said), fmt.Errorf("semel %s: %w\n%s", strings.Join(args, " "), err, errors.String())
	}
	return string(said), nil
}

// environment is where a command finds the database, which knows it by this name.
func (r *run) environment(name string) []string {
	return []string{"DATABASE=" + r.Server.DSN() + "&application_name=" + name}
}
