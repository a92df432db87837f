package stores

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/audit"
	"github.com/semel-go/semel/internal/legible"
	"github.com/spf13/cobra"
)

// verification has the flags of `semel audit verify`.
type verification struct {
	auditFlags
	file, head, headFile, keyFile string
}

func auditVerify(c *command.CLI) *cobra.Command {
	f := &verification{}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Verify the audit trail",
		Long: `Find lines of the audit trail that were changed, removed, reordered, inserted or
cut off, and changes that differ from their sealed lines. Someone who can write
the tables can also create a new chain: save the head that verify prints
elsewhere and pass it with --head next time, or seal with a key (audit.key in
the policy). --file verifies an exported trail without a store; - reads
standard input.

Exit codes: 0 no findings; 4 findings.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return verify(c, cmd, f) },
	}
	cmd.Flags().StringVar(&f.file, "file", "", "verify this exported chain")
	cmd.Flags().StringVar(&f.head, "head", "", "a saved head, as verify prints it")
	cmd.Flags().StringVar(&f.headFile, "head-file", "", "a file of saved heads")
	cmd.Flags().StringVar(&f.keyFile, "key-file", "", "a file with the key (default: the key of the policy)")
	f.add(c, cmd)
	cmd.MarkFlagsMutuallyExclusive("file", "store")
	return cmd
}

func verify(c *command.CLI, cmd *cobra.Command, f *verification) error {
	by, err := f.readFlags()
	if err != nil {
		return err
	}
	var found []operate.Verified
	if f.file != "" {
		found, err = verifyFile(c, cmd, f, by)
	} else {
		err = withAudits(c, f.store, func(a *assembly.Assembly, p *policy.Policy) (err error) {
			found, err = verifyStores(cmd.Context(), c, a, p, by)
			return err
		})
	}
	if err != nil {
		return err
	}
	return printVerified(c, found)
}

// readFlags returns the key and the heads (earlier ends of the audit chain) that the flags name.
func (f *verification) readFlags() (by operate.Verification, err error) {
	heads, err := f.heads()
	if err != nil {
		return by, err
	}
	for _, h := range heads {
		point, err := audit.ParsePoint(h)
		if err != nil {
			return by, command.UsageError("%v", err)
		}
		by.Heads = append(by.Heads, point)
	}
	if f.keyFile == "" {
		return by, nil
	}
	key, err := shape.ReadFile(f.keyFile)
	if err != nil {
		return by, command.Failed(fmt.Errorf("--key-file: %w", err))
	}
	if by.Key = []byte(strings.TrimRight(string(key), "\r\n")); len(by.Key) < policy.LeastAuditKey {
		return by, command.UsageError("--key-file: the key has %d bytes; one has at least %d", len(by.Key), policy.LeastAuditKey)
	}
	return by, nil
}

// heads returns the earlier ends of the audit chain (heads) in --head and in the file of --head-file. The
// file can be an earlier output of verify: heads ignores lines that do not start with a number and a colon.
func (f *verification) heads() (all []string, err error) {
	if f.head != "" {
		all = append(all, f.head)
	}
	if f.headFile == "" {
		return all, nil
	}
	text, err := shape.ReadFile(f.headFile)
	if err != nil {
		return nil, command.Failed(fmt.Errorf("--head-file: %w", err))
	}
	found := len(all)
	for line := range strings.Lines(string(text)) {
		number, _, colon := strings.Cut(line, ":")
		if _, err := strconv.ParseInt(number, 10, 64); err == nil && colon {
			all = append(all, strings.Fields(line)[0])
		}
	}
	if len(all) == found {
		return nil, command.UsageError("--head-file: %s has no head; keep what semel audit verify prints", f.headFile)
	}
	return all, nil
}

func verifyStores(ctx context.Context, c *command.CLI, a *assembly.Assembly, p *policy.Policy, by operate.Verification) (all []operate.Verified, err error) {
	if len(by.Heads) > 0 {
		if _, err := oneStore(c, a); err != nil {
			return nil, err
		}
	}
	if by.Key == nil {
		by.Key = []byte(p.Audit.Key)
	}
	for _, s := range a.Stores {
		found, err := by.Verify(ctx, s.Name(), s)
		if err != nil {
			return nil, ofStore(s, err)
		}
		all = append(all, found)
	}
	return all, nil
}

// verifyFile verifies a chain in a file. verifyFile needs no policy. If the user gives a policy, verifyFile
// uses only the key of the policy.
func verifyFile(c *command.CLI, cmd *cobra.Command, f *verification, by operate.Verification) ([]operate.Verified, error) {
	if cmd.Flags().Changed("config") && by.Key == nil {
		p, err := c.Load()
		if err != nil {
			return nil, err
		}
		by.Key = []byte(p.Audit.Key)
	}
	in, err := c.OpenInput(f.file)
	if err != nil {
		return nil, command.Failed(err)
	}
	defer in.Close()
	found, err := by.VerifyFile(f.file, in)
	var path *os.PathError
	if err != nil && !errors.As(err, &path) {
		err = fmt.Errorf("file %s: %w", f.file, err)
	}
	return []operate.Verified{found}, command.Failed(err)
}

func printVerified(c *command.CLI, all []operate.Verified) error {
	if c.JSON {
		if err := c.WriteJSON(map[string]any{"chains": all}); err != nil {
			return err
		}
	}
	wrong := int64(0)
	for _, v := range all {
		wrong += v.Total
		if !c.JSON {
			printChain(c, v)
		}
	}
	if wrong > 0 {
		return command.Found(fmt.Errorf("the audit is not as it was sealed: %s", output.Counted(int(wrong), int(wrong), "finding")))
	}
	return nil
}

func printChain(c *command.CLI, v operate.Verified) {
	name := legible.Printable(v.Store + v.File)
	tell := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if c.OutTerminal {
			text = terminal.Wrap(text, c.Width)
		}
		fmt.Fprintln(c.Out, text)
	}
	for _, f := range v.Findings {
		tell("%s: %s", name, legible.Printable(f.String()))
	}
	if more := v.Total - int64(len(v.Findings)); more > 0 {
		tell("%s: and %d more", name, more)
	}
	tell("%s: %s, %d not as sealed", name, output.Counted(int(v.Lines), int(v.Lines), "line"), v.Total)
	if v.Unsealed > 0 {
		tell("%s: %s not sealed yet, the oldest of %s", name, output.Counted(int(v.Unsealed), int(v.Unsealed), "change"), output.Moment(*v.Oldest))
	}
	switch {
	case v.Total == 0:
		fmt.Fprintln(c.Out, v.Head)
	case v.Answerable():
		tell("%s: once you know why, keep the head %s elsewhere and give it with --head: it answers for these lines", name, v.Head)
	}
	if v.Unchecked > 0 {
		c.Remark("%s: %s under a key, which was not given: only their order was verified, not their content", name, output.Counted(int(v.Unchecked), int(v.Unchecked), "line"))
	}
}
