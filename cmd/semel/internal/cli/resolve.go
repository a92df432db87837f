package cli

import (
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// rowResolve records what became of calls whose outcome is unknown; done is the word of
// --outcome for what took effect, and what did not is not-DONE.
func rowResolve(c *common, done string) *cobra.Command {
	f := &filter{legal: admin.Resolve.From()}
	var all, dryRun bool
	var why, who, outcome string
	cmd := &cobra.Command{
		Use:   "resolve [NUMBER...] --outcome WORD --because TEXT",
		Short: "Say what became of calls whose outcome nobody knew",
		Long: `Say what became of calls whose outcome nobody knew.

Find out from the other side whether it was ` + done + `, before you say so.
With ` + done + ` the message is completed, and nobody calls for it again. With
not-` + done + ` it is due at once, as if no call had been made for it. ` + attemptsStay,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := parseOutcome(outcome, done)
			if err != nil {
				return err
			}
			chosen, err := f.targets(c, cmd, all, args)
			if err != nil {
				return err
			}
			if err := recorded(&who, why, dryRun); err != nil {
				return err
			}
			order := operate.Order{Verb: admin.Resolve, Outcome: found, Filter: chosen, Who: who, Why: why, DryRun: dryRun}
			return c.carry(cmd.Context(), order, f, follow{})
		},
	}
	cmd.Flags().StringVar(&outcome, "outcome", "", "what you found out: "+done+" or not-"+done)
	complete(cmd, "outcome", []string{done, "not-" + done})
	cmd.Flags().BoolVar(&all, "all", false, "all that the filters choose, instead of numbers")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be done")
	yesFlag(cmd, &f.yes)
	recordFlags(cmd, &who, &why)
	return c.withConfig(f.add(c, cmd, store.StateParked))
}

func parseOutcome(text, done string) (admin.Resolution, error) {
	switch text {
	case done:
		return admin.ResolvedDone, nil
	case "not-" + done:
		return admin.ResolvedNotDone, nil
	case "":
		return 0, usage("--outcome is missing: say what you found out, %s or not-%s; while nobody knows, the message waits as it is", done, done)
	}
	return 0, usage("--outcome is %q; it is %s or not-%s", text, done, done)
}
