//go:build unix

package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/itest/worlds/processes"
)

// semel runs a command of the binary with the policy and decodes its JSON output. The exit codes in `codes`
// are not errors: they mean that work is left, and the caller reads it in the output.
func (r *run) semel(ctx context.Context, into any, codes []int, args ...string) error {
	cmd := exec.CommandContext(ctx, r.Binary, slices.Concat(args, []string{"--config", policyFile, "--json"})...)
	cmd.Dir, cmd.Env = r.Folder, append(cmd.Environ(), r.environment("operator")...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	said, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && slices.Contains(codes, exit.ExitCode()) {
		err = nil
	}
	if err == nil {
		err = json.Unmarshal(said, into)
	}
	if err != nil {
		return fmt.Errorf("semel %s: %w\n%s\n%.2000s", strings.Join(args, " "), err, complaints.String(), said)
	}
	return nil
}

// environment returns the environment of a command: the address of the database and the application name.
func (r *run) environment(name string) []string {
	return []string{"DATABASE=" + r.Server.DSN() + "&application_name=" + name, "MEMBER=" + name}
}

// operator is a command that an operator runs while the members run. The proof may kill it.
type operator struct {
	processes.Command
	*processes.Process
}

// call starts an operator's command.
func (r *run) call(name string, args ...string) (o *operator, err error) {
	r.called++
	o = &operator{Command: processes.Command{Binary: r.Binary, Folder: r.Folder, Policy: policyFile, Args: args, Env: r.environment(name),
		Log: fmt.Sprintf("%s-%d.log", name, r.called), Summary: fmt.Sprintf("%s-%d.json", name, r.called)}}
	o.Process, err = o.Command.Start()
	r.calls = append(r.calls, o)
	return o, err
}

// killCalls kills the commands that still run at the end of the proof.
func (r *run) killCalls() {
	for _, o := range r.calls {
		if o.Process != nil {
			_ = o.Process.Kill()
		}
	}
}

// shot kills a command. It counts the kill if the command was still running.
func (r *run) shot(o *operator) error {
	alive, err := o.Running()
	if err != nil || !alive {
		return err
	}
	r.ledger.CommandKills++
	r.Say("command kill %d: semel %.60s", r.ledger.CommandKills, strings.Join(o.Args, " "))
	return o.Process.Kill()
}

// ended waits until a command has ended with one of these exit codes. Meanwhile it restarts members that end.
func (r *run) ended(ctx context.Context, o *operator, codes ...int) error {
	err := r.Until(ctx, func() (over bool, err error) {
		alive, err := o.Running()
		return !alive, err
	})
	if err != nil {
		return err
	}
	if code := o.Status.ExitStatus(); !slices.Contains(codes, code) {
		text, _ := os.ReadFile(filepath.Join(r.Folder, o.Log))
		said, _ := os.ReadFile(filepath.Join(r.Folder, o.Summary))
		return fmt.Errorf("semel %s ended with exit code %d: %.2000s\n%.2000s", strings.Join(o.Args, " "), code, text, said)
	}
	return nil
}

// counted waits until the query returns at least this count, or the command has ended. The proof then kills
// the command in the middle of its work.
func (r *run) counted(ctx context.Context, o *operator, least int, query string, args ...any) error {
	looked := time.Time{}
	return r.Until(ctx, func() (bool, error) {
		if alive, err := o.Running(); !alive || err != nil {
			return true, err
		}
		if time.Since(looked) < 20*time.Millisecond {
			return false, nil
		}
		looked = time.Now()
		n := 0
		return r.Activity.DB.QueryRowContext(ctx, query, args...).Scan(&n) == nil && n >= least, nil
	})
}
