package messages

import (
	"strconv"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// Commands are the commands of this package.
func Commands(c *command.CLI) []*cobra.Command {
	return []*cobra.Command{parkedCommand(c), deadCommand(c), inboxCommand(c), intentsCommand(c), gapsCommand(c), eraseCommand(c)}
}

func parkedCommand(c *command.CLI) *cobra.Command {
	return command.Group("parked", "Show and repair parked messages",
		rowList(c, "List parked messages", store.StateParked), parkedSummary(c), rowShow(c),
		rowAct(c, admin.Retry, store.StateParked), rowResolve(c, admin.ResolvedDone.String()), rowAct(c, admin.Discard, store.StateParked),
		rowAct(c, admin.Reopen, store.StateDiscarded))
}

// rowShow shows one row with its history.
func rowShow(c *command.CLI) *cobra.Command {
	return showCommand(c, "Show one message with its history", func(*operate.Detail) {})
}

// showCommand shows a row, to which tell may add what is known of its kind alone.
func showCommand(c *command.CLI, short string, tell func(*operate.Detail)) *cobra.Command {
	var store string
	var payload bool
	cmd := &cobra.Command{
		Use:   "show NUMBER",
		Short: short,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.UsageError("give one row number; ls shows them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			numbers, err := parseNumbers(args)
			if err != nil {
				return err
			}
			a, err := c.OpenBox(cmd.Context(), store)
			if err != nil {
				return err
			}
			defer c.Close(a)
			box := command.BoxOf(a.Stores[0])
			box.CallKey = a.CallKey
			detail, err := box.Show(cmd.Context(), numbers[0], payload)
			if err != nil {
				return command.Failed(err)
			}
			tell(&detail)
			if c.JSON {
				return c.WriteJSON(detail)
			}
			return command.Failed(writeDetail(c, c.Out, detail))
		},
	}
	cmd.Flags().BoolVar(&payload, "payload", false, "also show headers and payload, which may contain secrets")
	cmd.Flags().StringVar(&store, "store", "", "the store, if the policy has several")
	return c.WithConfig(cmd)
}

// rowAct is retry, release or discard; --all chooses rows in these states.
func rowAct(c *command.CLI, verb admin.Verb, standard ...store.RowState) *cobra.Command {
	return rowActOf(c, &filter{}, verb, standard...)
}

// rowActOf is rowAct with a filter that may have flags of its own.
func rowActOf(c *command.CLI, f *filter, verb admin.Verb, standard ...store.RowState) *cobra.Command {
	var all, dryRun bool
	var why, who string
	var then follow
	f.legal = verb.From()
	shorts := map[admin.Verb]string{
		admin.Retry:    "Retry messages now",
		admin.Release:  "End claims, and make received messages due now",
		admin.Skip:     "Let the messages go on that wait behind these",
		admin.Discard:  "Discard messages (undo with reopen)",
		admin.Reopen:   "Reopen discarded messages",
		admin.Send:     "Make intents due now, suppressed ones too",
		admin.Suppress: "Hold intents back until they are sent",
	}
	cmd := &cobra.Command{
		Use:   string(verb) + " [NUMBER...] --because TEXT",
		Short: shorts[verb],
		RunE: func(cmd *cobra.Command, args []string) error {
			if then.wait && then.run {
				return command.UsageError("give --wait or --run, not both: --wait waits for a running consumer, --run processes the messages here")
			}
			chosen, err := f.targets(c, cmd, all, args)
			if err != nil {
				return err
			}
			chosen.DueLater = all && (verb == admin.Retry || verb == admin.Release) // those that are due need no act
			if err := command.CheckRecord(&who, why, dryRun); err != nil {
				return err
			}
			order := operate.Order{Verb: verb, Filter: chosen, Group: f.group, Who: who, Why: why, DryRun: dryRun}
			if dryRun {
				then = follow{}
			}
			return carry(cmd.Context(), c, order, f, then)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all rows that match the filters, instead of numbers")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would change, by consumer and reason")
	command.YesFlag(cmd, &f.yes)
	command.RecordFlags(cmd, &who, &why)
	if verb == admin.Retry || verb == admin.Send {
		cmd.Long = shorts[verb] + ".\n\n" + attemptsStay
		cmd.Flags().BoolVar(&then.wait, "wait", false, "wait until a running consumer has processed them, and print the results")
		cmd.Flags().BoolVar(&then.run, "run", false, "process them in this command, and print the results")
	}
	return c.WithConfig(f.add(c, cmd, standard...))
}

// attemptsStay is what an act that makes a message due does not change.
const attemptsStay = `Attempts stay
counted: a message that has used up those of its policy has one more each time.`

func parseNumbers(args []string) ([]int64, error) {
	var numbers []int64
	for _, a := range args {
		n, err := strconv.ParseInt(a, 10, 64)
		if err != nil || n < 1 {
			return nil, command.UsageError("%q is no row number; ls shows them", a)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
