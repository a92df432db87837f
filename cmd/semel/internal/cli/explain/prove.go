package explain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/cmd/semel/internal/proof"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/handlertest"
	"github.com/semel-go/semel/internal/legible"
	"github.com/spf13/cobra"
)

// proveFlags has the flags of semel check --prove.
type proveFlags struct {
	enabled                  bool
	messages, answers, setup string
	ignore                   []string
}

func (f *proveFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.enabled, "prove", false, "test handlers with failures")
	cmd.Flags().StringVar(&f.messages, "messages", "", "with --prove, file with one message a line")
	cmd.Flags().StringVar(&f.answers, "answers", "", "with --prove, file with one answer a line")
	cmd.Flags().StringVar(&f.setup, "setup", "", "with --prove, SQL file with tables and rows")
	cmd.Flags().StringSliceVar(&f.ignore, "ignore", nil, "with --prove, TABLE.COLUMN not to compare")
}

// check returns an error for a flag that needs --prove but is given without it, and for a flag that excludes
// --prove.
func (f *proveFlags) check(cmd *cobra.Command) error {
	for _, name := range []string{"messages", "answers", "setup", "ignore"} {
		if cmd.Flags().Changed(name) && !f.enabled {
			return command.UsageError("--%s belongs to --prove: give both", name)
		}
	}
	for _, name := range []string{"deep", "from", "explain"} {
		if f.enabled && cmd.Flags().Changed(name) {
			return command.UsageError("--prove only tests handlers; run semel check --%s separately", name)
		}
	}
	return nil
}

// provedView shows the results of --prove for a consumer.
type provedView struct {
	Consumer string `json:"consumer"`
	// NotTested is why the handler was not tested.
	NotTested    string `json:"not_tested,omitempty"`
	*proof.Proof `json:"proof,omitempty"`
}

// run tests the handlers of the chosen consumers and keeps the results beside the policy.
func (f *proveFlags) run(ctx context.Context, c *command.CLI) error {
	p, err := c.Load()
	if err != nil {
		return err
	}
	switch {
	case c.Consumer != "" && p.Consumer(c.Consumer) == nil:
		return c.NoConsumer(p, c.Consumer)
	case f.messages+f.answers != "" && c.Consumer == "" && testable(p) > 1:
		return command.UsageError("--messages and --answers are for one consumer: name it with --consumer")
	}
	hash, err := proof.Hash(p)
	if err != nil {
		return command.Failed(err)
	}
	folder, err := os.MkdirTemp("", "semel-prove-")
	if err != nil {
		return command.Failed(err)
	}
	defer os.RemoveAll(folder)
	var views []provedView
	found := map[string]*proof.Proof{}
	for _, of := range p.Consumers {
		if c.Consumer != "" && of.Name != c.Consumer {
			continue
		}
		if only := handlertest.Ordered(); only != "" && !strings.HasPrefix(only, of.Name+"/") {
			continue
		}
		v := provedView{Consumer: of.Name, NotTested: assembly.Untested(p, of)}
		if v.NotTested == "" {
			if v.Proof, err = f.prove(ctx, c, p, of, folder); err != nil {
				return failedTrial(of, err)
			}
			v.Policy, v.Build, found[of.Name] = hash, command.ThisBuild().Line(), v.Proof
		}
		views = append(views, v)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case handlertest.Ordered() != "":
		return command.Failed(fmt.Errorf("this child process was not killed: %+v", views[0].In(proof.Fail, handlertest.Groups()...)))
	case len(found) > 0:
		if err := proof.Keep(p, found); err != nil {
			return command.Failed(fmt.Errorf("keep the results: %w", err))
		}
	}
	return printProofs(c, p, views)
}

// testable returns the number of consumers whose handlers can be tested.
func testable(p *policy.Policy) (n int) {
	for _, c := range p.Consumers {
		if assembly.Untested(p, c) == "" {
			n++
		}
	}
	return n
}

// failedTrial returns the error of a test that could not begin.
func failedTrial(of *policy.Consumer, err error) error {
	var fault shape.Fault
	if errors.As(err, &fault) {
		return command.Faults{fault}
	}
	return command.Failed(fmt.Errorf("consumer %s: %w", of.Name, err))
}

// prove tests the handler of one consumer.
func (f *proveFlags) prove(ctx context.Context, c *command.CLI, p *policy.Policy, of *policy.Consumer, folder string) (*proof.Proof, error) {
	t := &assembly.Trial{Policy: p, Consumer: of, Setup: f.setup, Ignore: f.ignore}
	if f.messages != "-" { // a child process could not read the messages again
		t.Again = f.childCommand(c, of)
	}
	var err error
	if t.Folder, err = os.MkdirTemp(folder, "consumer-"); err != nil {
		return nil, err
	}
	if err := f.read(ctx, c, t); err != nil {
		return nil, err
	}
	if err := t.ReadAnswers(f.answers); err != nil {
		return nil, err
	}
	report, err := t.Run(ctx)
	if err != nil {
		return nil, err
	}
	database := "SQLite"
	if p.Store(of.Store).Postgres != nil {
		database = "PostgreSQL"
	}
	return &proof.Proof{At: time.Now().UTC().Truncate(time.Second), Database: database, Messages: len(t.Messages), Subtests: proof.Subtests(report)}, nil
}

// childCommand returns a function that makes the command of a child process with the same flags.
func (f *proveFlags) childCommand(c *command.CLI, of *policy.Consumer) func(context.Context, handlertest.T) (*exec.Cmd, error) {
	args := []string{"check", "--prove", "--config", c.Config, "--consumer", of.Name}
	for _, flag := range [][2]string{{"--messages", f.messages}, {"--setup", f.setup}, {"--ignore", strings.Join(f.ignore, ",")}} {
		if flag[1] != "" {
			args = append(args, flag[0], flag[1])
		}
	}
	return func(ctx context.Context, _ handlertest.T) (*exec.Cmd, error) {
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Args[0] = os.Args[0]
		return cmd, nil
	}
}

// read reads the messages of --messages, or the first messages of the consumer's source if the source is a
// file.
func (f *proveFlags) read(ctx context.Context, c *command.CLI, t *assembly.Trial) error {
	name, read := f.messages, t.Read
	if s := t.Policy.Source(t.Consumer.From); name == "" && s != nil && s.File != nil && s.File.Path != shape.Stdin {
		name, read = s.File.Path, t.ReadSource
	}
	if name == "" {
		return errors.New("give messages that its handler can process: --messages FILE, with one message a line")
	}
	in, err := c.OpenInput(name)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := read(ctx, name, in); err != nil {
		return err
	}
	if n := len(t.Messages); n < 2 {
		return fmt.Errorf("%s has %s with different ids; give --messages FILE with two or more", name, output.Counted(n, n, "message"))
	}
	return nil
}

func printProofs(c *command.CLI, p *policy.Policy, views []provedView) error {
	faults, tested := 0, 0
	for _, v := range views {
		if v.Proof != nil {
			tested++
			faults += len(v.In(proof.Fail, handlertest.Groups()...))
		}
	}
	var err error
	if c.JSON {
		err = c.WriteJSON(struct {
			Consumers []provedView `json:"consumers"`
			Failed    int          `json:"failed"`
		}{views, faults})
	} else {
		var b strings.Builder
		for _, v := range views {
			writeProof(c, &b, v)
		}
		_, err = fmt.Fprint(c.Out, b.String())
	}
	switch {
	case err != nil:
		return command.Failed(err)
	case tested == 0:
		return command.Failed(fmt.Errorf("%s has no consumer whose handler can be tested", p.File))
	}
	c.Remark("The tables of the stores were not changed. The results are in %s; semel check answers questions 4 and 18 with them.", terminal.Line(proof.File(p)))
	if faults > 0 {
		return command.Found(fmt.Errorf("%s failed", output.Counted(faults, faults, "subtest")))
	}
	return nil
}

// writeProof writes a line for each group of subtests, and a sentence for each fault.
func writeProof(c *command.CLI, b *strings.Builder, v provedView) {
	if v.Proof == nil {
		fmt.Fprintf(b, "consumer %s: not tested, because %s\n", legible.Printable(v.Consumer), v.NotTested)
		return
	}
	fmt.Fprintf(b, "consumer %s: tested with %s on %s\n", legible.Printable(v.Consumer), output.Counted(v.Messages, v.Messages, "message"), v.Database)
	for _, group := range handlertest.Groups() {
		passed, failed, skipped := v.In(proof.Pass, group), v.In(proof.Fail, group), v.In(proof.NotApplicable, group)
		word, what := "pass", output.Counted(len(passed), len(passed), "subtest")
		switch {
		case len(failed) > 0:
			word, what = "FAIL", fmt.Sprintf("%d of %s failed", len(failed), output.Counted(len(passed)+len(failed), len(passed)+len(failed), "subtest"))
		case len(passed) == 0 && len(skipped) > 0:
			word, what = "n/a", skipped[0].Says
		}
		fmt.Fprintf(b, "  %-4s  %-20s  %s\n", word, group, legible.Printable(what))
		for _, s := range failed {
			fmt.Fprintf(b, "%*s%s\n", faultIndent, "", c.Wrapped(terminal.Line(s.Name+": "+s.Says), faultIndent))
		}
	}
}

const faultIndent = 8
