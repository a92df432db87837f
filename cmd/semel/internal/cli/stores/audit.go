package stores

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/audit"
	"github.com/semel-go/semel/internal/legible"
	"github.com/spf13/cobra"
)

func auditCommand(c *command.CLI) *cobra.Command {
	return command.Group("audit", "Show and verify the audit trail", auditList(c), auditVerify(c), auditExport(c), auditSeal(c))
}

type auditFlags struct{ store string }

func (f *auditFlags) add(c *command.CLI, cmd *cobra.Command) *cobra.Command {
	command.StoreFlag(cmd, &f.store)
	command.RefuseEmpty(cmd, "store")
	return c.WithConfig(cmd)
}

// withAudits calls the function work with the chosen stores. The schema of a store is not checked
// completely, because a missing trigger must not prevent a verification.
func withAudits(c *command.CLI, store string, work func(*assembly.Assembly, *policy.Policy) error) error {
	p, store, err := c.LoadFor(store)
	if err != nil {
		return err
	}
	a, err := c.Open(p, store, false)
	if err != nil {
		return err
	}
	defer c.Close(a)
	return work(a, p)
}

// oneStore returns the only open store. If several stores are open, oneStore returns an error, because each
// store has its own chain.
func oneStore(c *command.CLI, a *assembly.Assembly) (*assembly.Store, error) {
	if len(a.Stores) > 1 {
		return nil, command.UsageError("%s has %d stores, each with a chain of its own; name one with --store", c.Config, len(a.Stores))
	}
	return a.Stores[0], nil
}

func ofStore(s *assembly.Store, err error) error {
	return command.Failed(s.Failed(err))
}

// chosenActs has the flags that choose audit records.
type chosenActs struct {
	verb, who, since string
	row              int64
	unsealed         bool
	from             time.Time
}

func (f *chosenActs) matches(a admin.AuditedAct) bool {
	return (f.verb == "" || a.Verb == f.verb) && (f.who == "" || a.Who == f.who) && (f.row == 0 || a.Row == f.row) &&
		(!f.unsealed || a.Sequence == 0) && !a.At.Before(f.from)
}

func auditList(c *command.CLI) *cobra.Command {
	f, l, chosen := &auditFlags{}, &command.Listing{}, &chosenActs{}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List changes by operators, latest last",
		Long: `List changes by operators: when, by whom, what and why. LINE is the line of the
change in the sealed trail of its store; - means not sealed yet. With --limit
the latest changes are shown.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := l.Check(c, cmd); err != nil {
				return err
			}
			if chosen.since != "" {
				if chosen.from, err = command.ParseTime("since", chosen.since, time.Now); err != nil {
					return err
				}
			}
			return withAudits(c, f.store, func(a *assembly.Assembly, _ *policy.Policy) error {
				return listActs(cmd.Context(), c, a, chosen, l)
			})
		},
	}
	cmd.Flags().StringVar(&chosen.verb, "verb", "", "only changes of this kind, such as discard")
	cmd.Flags().StringVar(&chosen.who, "who", "", "only changes by this person")
	cmd.Flags().StringVar(&chosen.since, "since", "", "start: a date, a time, or 24h (ago)")
	cmd.Flags().Int64Var(&chosen.row, "row", 0, "only changes of this row number")
	cmd.Flags().BoolVar(&chosen.unsealed, "unsealed", false, "only unsealed changes")
	l.Add(c, cmd, 0, "changes")
	return f.add(c, cmd)
}

func listActs(ctx context.Context, c *command.CLI, a *assembly.Assembly, chosen *chosenActs, l *command.Listing) error {
	views := []operate.AuditView{}
	count := 0
	for _, s := range a.Stores {
		for act, err := range operate.AuditedActs(ctx, s) {
			if err != nil {
				return ofStore(s, err)
			}
			if !chosen.matches(act) {
				continue
			}
			count++
			if l.Full(len(views)) {
				views = append(views[:0], views[1:]...)
			}
			views = append(views, operate.NewAuditView(s.Name(), act))
		}
	}
	return command.PrintList(c, l, "changes", "change", views, count, actColumns)
}

func actColumns(_ []operate.AuditView, wide bool) []output.Column[operate.AuditView] {
	type view = operate.AuditView
	numberOr := func(n int64) string {
		if n == 0 {
			return "-"
		}
		return fmt.Sprint(n)
	}
	store := func(v view) string { return v.Store }
	return []output.Column[view]{
		output.Text("LINE", func(v view) string { return numberOr(v.Sequence) }),
		output.Text("STORE", store).IfVaried(),
		output.Number("CHANGE", func(v view) int64 { return v.Number }).If(wide),
		output.Text("AT", func(v view) string { return output.Moment(v.At) }),
		output.Flexible("WHO", func(v view) string { return v.Who }),
		output.Flexible("VERB", func(v view) string { return v.Verb }),
		output.Text("ROW", func(v view) string { return numberOr(v.Row) }),
		output.Flexible("RESULT", func(v view) string { return v.Result }).If(wide),
		output.Flexible("WHY", func(v view) string { return v.Why }),
	}
}

func auditExport(c *command.CLI) *cobra.Command {
	f := &auditFlags{}
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Export the audit trail as JSON lines",
		Long: `Write the sealed audit trail of a store to standard output, one JSON line for
each change, and its end on the last line. semel audit verify --file verifies
it without the store. Unsealed changes are not exported.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAudits(c, f.store, func(a *assembly.Assembly, _ *policy.Policy) error { return export(cmd.Context(), c, a) })
		},
	}
	command.StoreFlag(cmd, &f.store)
	command.RefuseEmpty(cmd, "store")
	c.ConfigFlag(cmd)
	return cmd
}

func export(ctx context.Context, c *command.CLI, a *assembly.Assembly) error {
	s, err := oneStore(c, a)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(terminal.JSON(c.Out))
	lines := 0
	end, err := operate.Chain(ctx, s, func(l admin.AuditedSeal) error {
		lines++
		return audit.WriteLine(out, l.Seal)
	})
	if err == nil {
		err = audit.WriteEnd(out, end)
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return ofStore(s, err)
	}
	fmt.Fprintln(c.Err, output.Counted(lines, lines, "change"))
	return nil
}

func auditSeal(c *command.CLI) *cobra.Command {
	f, begin := &auditFlags{}, false
	cmd := &cobra.Command{
		Use:   "seal",
		Short: "Seal the audit trail now",
		Long: `Seal changes that are not sealed yet. With a key, sealing continues only after a
line that was written with the key; the first migration writes the first line.
--begin starts a new chain, or continues from an end that does not match. Use
it if the first migration ran without the key, or if you know why the end does
not match.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAudits(c, f.store, func(a *assembly.Assembly, p *policy.Policy) error { return seal(cmd.Context(), c, a, p, begin) })
		},
	}
	cmd.Flags().BoolVar(&begin, "begin", false, "start a chain with the key, or continue from any end")
	return f.add(c, cmd)
}

// sealedView shows the number of audit records that were added to the audit chain of a store.
type sealedView struct {
	Store     string `json:"store"`
	Lines     int    `json:"lines"`
	Elsewhere bool   `json:"elsewhere,omitempty"`
}

func seal(ctx context.Context, c *command.CLI, a *assembly.Assembly, p *policy.Policy, begin bool) error {
	done := []sealedView{}
	for _, s := range a.Stores {
		lines, elsewhere, err := operate.SealAll(ctx, s, []byte(p.Audit.Key), begin)
		if err != nil {
			return ofStore(s, err)
		}
		done = append(done, sealedView{s.Name(), lines, elsewhere})
	}
	if c.JSON {
		return c.WriteJSON(map[string]any{"stores": done})
	}
	for _, d := range done {
		fmt.Fprintf(c.Out, "%s: %s sealed\n", legible.Printable(d.Store), output.Counted(d.Lines, d.Lines, "change"))
		if d.Elsewhere {
			fmt.Fprintf(c.Err, "%s: another process seals now\n", legible.Printable(d.Store))
		}
	}
	return nil
}
