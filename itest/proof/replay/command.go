//go:build unix

package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// semel runs a command of the binary with the policy and decodes its JSON output, unless into is nil. The exit codes of
// the parameter codes are no error: they mean that messages are left, which the caller reads in the output.
func (r *run) semel(ctx context.Context, into any, codes []int, args ...string) {
	cmd := exec.CommandContext(ctx, r.Binary, slices.Concat(args, []string{"--config", policyFile, "-o", "json"})...)
	cmd.Dir, cmd.Env = r.Folder, append(cmd.Environ(), r.Environment("operator")...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	said, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && slices.Contains(codes, exit.ExitCode()) {
		err = nil
	}
	if err == nil && into != nil {
		err = json.Unmarshal(said, into)
	}
	if err != nil {
		proof.Check(fmt.Errorf("semel %s: %w\n%s\n%.2000s", strings.Join(args, " "), err, complaints.String(), said))
	}
}

// operator is a command that an operator runs while the members run. The fault test may kill the operator's command.
type operator struct {
	processes.Command
	*processes.Process
}

// isRunning reports whether the command has not ended.
func (o *operator) isRunning() bool { return proof.Must(o.Running()) }

// call starts an operator's command.
func (r *run) call(name string, args ...string) *operator {
	file := fmt.Sprintf("%s-%d", name, len(r.calls)+1)
	o := &operator{Command: processes.Command{Binary: r.Binary, Folder: r.Folder, Policy: policyFile, Args: args, Env: r.Environment(name),
		Log: file + ".log", Summary: file + ".json"}}
	o.Process = proof.Must(o.Command.Start())
	r.calls = append(r.calls, o)
	return o
}

// killCalls kills the commands that still run at the end of the fault test.
func (r *run) killCalls() {
	for _, o := range r.calls {
		_ = o.Process.Kill()
	}
}

// killCommand kills a command, and counts the kill if the command was still running.
func (r *run) killCommand(o *operator) {
	if o.isRunning() {
		r.ledger.CommandKills++
		r.Say("command kill %d: semel %.60s", r.ledger.CommandKills, strings.Join(o.Args, " "))
		proof.Check(o.Process.Kill())
	}
}

// waitEnded waits until a command has ended with one of the given exit codes. During the wait, members that end
// are restarted.
func (r *run) waitEnded(ctx context.Context, o *operator, codes ...int) {
	r.Until(ctx, func() bool { return !o.isRunning() })
	if code := o.Status.ExitStatus(); !slices.Contains(codes, code) {
		text, _ := os.ReadFile(r.Path(o.Log))
		said, _ := os.ReadFile(r.Path(o.Summary))
		proof.Check(fmt.Errorf("semel %s ended with exit code %d: %.2000s\n%.2000s", strings.Join(o.Args, " "), code, text, said))
	}
}

// waitCount waits until the query returns a count of at least minimum, or the command has ended. After waitCount, the
// caller can kill the command in the middle of its work.
func (r *run) waitCount(ctx context.Context, o *operator, minimum int, query string, args ...any) {
	looked := time.Time{}
	r.Until(ctx, func() bool {
		if !o.isRunning() {
			return true
		}
		if time.Since(looked) < 20*time.Millisecond {
			return false
		}
		looked = time.Now()
		n, err := ledger.Count(ctx, r.Activity.DB, query, args...)
		return err == nil && n >= minimum
	})
}
