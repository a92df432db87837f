package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/audit"
	"github.com/semel-go/semel/internal/legible"
	"github.com/spf13/cobra"
)

// verification are the flags of audit verify.
type verification struct {
	audited
	file, head, headFile, keyFile string
}

func auditVerify(c *common) *cobra.Command {
	f := &verification{}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Find what of the audit is not as it was sealed",
		Long: `Find lines of the chain that were changed, removed, reordered, inserted or cut
off, and acts that are not what was sealed. Who can write the tables can also
make a chain anew: keep the head that verify prints elsewhere and give it with
--head next time, or seal with a key (audit.key in the policy). With --file an
exported chain is verified, and no store is asked; - reads standard input.

Exit codes: 0 nothing is wrong, 4 something is.`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.verify(cmd, f) },
	}
	cmd.Flags().StringVar(&f.file, "file", "", "verify this exported chain")
	cmd.Flags().StringVar(&f.head, "head", "", "a head that was kept, as verify prints it")
	cmd.Flags().StringVar(&f.headFile, "head-file", "", "a file with such heads, as verify printed them")
	cmd.Flags().StringVar(&f.keyFile, "key-file", "", "a file with the key, instead of the policy's")
	f.add(c, cmd)
	cmd.MarkFlagsMutuallyExclusive("file", "store")
	return cmd
}

func (c *common) verify(cmd *cobra.Command, f *verification) error {
	by, err := f.read()
	if err != nil {
		return err
	}
	var found []operate.Verified
	if f.file != "" {
		found, err = c.verifyFile(cmd, f, by)
	} else {
		err = c.withAudits(f.store, func(a *assembly.Assembly, p *policy.Policy) (err error) {
			found, err = c.verifyStores(cmd.Context(), a, p, by)
			return err
		})
	}
	if err != nil {
		return err
	}
	return c.printVerified(found)
}

// read reads the heads and the key that the flags give.
func (f *verification) read() (by operate.Verification, err error) {
	heads, err := f.heads()
	if err != nil {
		return by, err
	}
	for _, h := range heads {
		point, err := audit.ParsePoint(h)
		if err != nil {
			return by, usage("%v", err)
		}
		by.Heads = append(by.Heads, point)
	}
	if f.keyFile == "" {
		return by, nil
	}
	key, err := policy.ReadFile(f.keyFile)
	if err != nil {
		return by, failed(fmt.Errorf("--key-file: %w", err))
	}
	if by.Key = []byte(strings.TrimRight(string(key), "\r\n")); len(by.Key) < policy.LeastAuditKey {
		return by, usage("--key-file: the key has %d bytes; one has at least %d", len(by.Key), policy.LeastAuditKey)
	}
	return by, nil
}

// heads are those of --head and of --head-file, which may be what verify printed: a line
// that begins with no number and a colon is none.
func (f *verification) heads() (all []string, err error) {
	if f.head != "" {
		all = append(all, f.head)
	}
	if f.headFile == "" {
		return all, nil
	}
	text, err := policy.ReadFile(f.headFile)
	if err != nil {
		return nil, failed(fmt.Errorf("--head-file: %w", err))
	}
	found := len(all)
	for line := range strings.Lines(string(text)) {
		number, _, colon := strings.Cut(line, ":")
		if _, err := strconv.ParseInt(number, 10, 64); err == nil && colon {
			all = append(all, strings.Fields(line)[0])
		}
	}
	if len(all) == found {
		return nil, usage("--head-file: %s has no head; keep what semel audit verify prints", f.headFile)
	}
	return all, nil
}

func (c *common) verifyStores(ctx context.Context, a *assembly.Assembly, p *policy.Policy, by operate.Verification) (all []operate.Verified, err error) {
	if len(by.Heads) > 0 {
		if _, err := c.oneStore(a); err != nil {
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

// verifyFile needs no policy; one that is named has the key.
func (c *common) verifyFile(cmd *cobra.Command, f *verification, by operate.Verification) ([]operate.Verified, error) {
	if cmd.Flags().Changed("config") && by.Key == nil {
		p, err := c.load()
		if err != nil {
			return nil, err
		}
		by.Key = []byte(p.Audit.Key)
	}
	in, err := c.input(f.file)
	if err != nil {
		return nil, failed(err)
	}
	defer in.Close()
	found, err := by.VerifyFile(f.file, in)
	var path *os.PathError
	if err != nil && !errors.As(err, &path) {
		err = fmt.Errorf("file %s: %w", f.file, err)
	}
	return []operate.Verified{found}, failed(err)
}

func (c *common) printVerified(all []operate.Verified) error {
	if c.json {
		if err := c.writeJSON(map[string]any{"chains": all}); err != nil {
			return err
		}
	}
	wrong := int64(0)
	for _, v := range all {
		wrong += v.Total
		if !c.json {
			c.printChain(v)
		}
	}
	if wrong > 0 {
		return found(fmt.Errorf("the audit is not as it was sealed: %s", counted(int(wrong), int(wrong), "finding")))
	}
	return nil
}

func (c *common) printChain(v operate.Verified) {
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
	tell("%s: %s, %d not as sealed", name, counted(int(v.Lines), int(v.Lines), "line"), v.Total)
	if v.Unsealed > 0 {
		tell("%s: %s not sealed yet, the oldest of %s", name, counted(int(v.Unsealed), int(v.Unsealed), "act"), moment(*v.Oldest))
	}
	switch {
	case v.Total == 0:
		fmt.Fprintln(c.Out, v.Head)
	case v.Answerable():
		tell("%s: once you know why, keep the head %s elsewhere and give it with --head: it answers for these lines", name, v.Head)
	}
	if v.Unchecked > 0 {
		c.remark("%s: %s under a key, which was not given: that each follows the one before was looked at, and not what is in them", name, counted(int(v.Unchecked), int(v.Unchecked), "line"))
	}
}
