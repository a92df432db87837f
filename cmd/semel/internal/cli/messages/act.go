package messages

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/spf13/cobra"
)

// actCommand returns the command for a verb that changes rows. The returned command does not wait until a
// consumer has processed the rows.
func actCommand(c *command.CLI, of subject, verb admin.Verb) *cobra.Command {
	f := &filter{legal: verb.From()}
	var all bool
	order, outcome := operate.Order{Verb: verb}, ""
	cmd := &cobra.Command{
		Use:   string(verb) + " [NUMBER...] --because TEXT",
		Short: of.shortHelp(verb),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if verb == admin.Resolve {
				if order.Outcome, err = parseOutcome(outcome, of.doneOutcome()); err != nil {
					return err
				}
			}
			if order.Filter, err = f.targets(c, cmd, all, args); err != nil {
				return err
			}
			order.Filter.DueLater = all && verb == admin.Release // a claim that has expired needs no release
			if err := command.CheckRecord(&order.Who, order.Why, order.DryRun); err != nil {
				return err
			}
			order.Group = f.group
			return execute(cmd.Context(), c, order, f)
		},
	}
	if verb == admin.Resolve {
		cmd.Use = "resolve [NUMBER...] --outcome WORD --because TEXT"
		cmd.Long = `Record the outcome of calls. First ask the other side whether it was ` + of.doneOutcome() + `.
With ` + of.doneOutcome() + ` the message is applied without another call; with not-` + of.doneOutcome() + ` it is
retried at once. Attempts stay counted.`
		cmd.Flags().StringVar(&outcome, "outcome", "", "what you found out: "+of.doneOutcome()+" or not-"+of.doneOutcome())
		command.CompleteFlag(cmd, "outcome", []string{of.doneOutcome(), "not-" + of.doneOutcome()})
	}
	cmd.Flags().BoolVar(&all, "all", false, "all that the filters choose")
	cmd.Flags().BoolVar(&order.DryRun, "dry-run", false, "only show what would change")
	command.YesFlag(cmd, &f.skipConfirmation)
	command.RecordFlags(cmd, &order.Who, &order.Why)
	f.add(c, cmd, of.standard(verb)...)
	if of.intents {
		return ofOneSender(c, cmd)
	}
	return cmd
}

// shortHelp returns the first line of a command's help.
func (of subject) shortHelp(verb admin.Verb) string {
	switch verb {
	case admin.Release:
		return "End the claims of processes that hang"
	case admin.Skip:
		return "Unblock messages that wait behind a message"
	case admin.Discard:
		return "Discard " + of.word + "s (undo with messages reopen)"
	case admin.Reopen:
		return "Park discarded messages again"
	case admin.Resolve:
		return "Record the outcome of calls"
	}
	return "Hold intents back until they are retried"
}

// doneOutcome is the value of --outcome for a call that took effect.
func (of subject) doneOutcome() string {
	if of.intents {
		return "sent"
	}
	return admin.ResolvedDone.String()
}

// execute executes an operator's command and prints the result for each row.
func execute(ctx context.Context, c *command.CLI, o operate.Order, f *filter) error {
	a, err := c.OpenBox(ctx, f.store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	box := command.BoxOf(a.Stores[0])
	if o.Filter.Consumer, err = c.ActiveName(ctx, a, o.Filter.Consumer); err != nil {
		return err
	}
	if err := confirm(ctx, c, box, &o, f); err != nil {
		return err
	}
	o.Worked = command.RefuseIfUnworked(ctx, a, a.Stores[0])
	var done []operate.Result
	var stopped error
	for r, err := range box.Carry(ctx, o) {
		if err != nil {
			stopped = err
			break
		}
		done = append(done, r)
		if !c.JSON {
			fmt.Fprintln(c.Out, c.Wrapped(resultLine(c, o, r), textIndent))
		}
	}
	if len(done) == 0 && stopped == nil {
		fmt.Fprintln(c.Err, "0 messages match")
		if err := pointAtReasons(ctx, c, a, o.Filter); err != nil {
			return err
		}
	}
	if waiting := dueConsumers(done); stopped == nil && !o.DryRun && len(waiting) > 0 {
		notify(ctx, a.Stores[0], waiting)
		if stopped = printPaused(ctx, c, a.Stores[0], waiting); stopped == nil {
			next := "a running consumer will process them"
			if o.Verb == admin.Retry || o.Verb == admin.Send {
				next += ";\n--wait waits for that, --run processes them here"
			}
			fmt.Fprintln(c.Err, next)
		}
	}
	if !o.DryRun && !c.JSON {
		remarkUndo(c, a.Stores[0].Name(), done)
	}
	if o.Verb == admin.Discard && slices.ContainsFunc(done, func(r operate.Result) bool { return r.Conflict && r.OK() }) {
		fmt.Fprintln(c.Err, conflictsStay)
	}
	return concludeOrder(c, o, done, stopped)
}

// conflictsStay is the remark about discarded conflicts.
const conflictsStay = "a discarded conflict cannot be reopened if another content of its identity\ntook effect; semel messages show says whether it did"

// mostUndone is the maximum number of rows that a remark names.
const mostUndone = 10

// remarkUndo prints the command that undoes the changes.
func remarkUndo(c *command.CLI, st string, done []operate.Result) {
	var undo admin.Verb
	var numbers []string
	for _, r := range done {
		if r.Result == operate.Done && r.Undo != "" {
			undo, numbers = r.Undo, append(numbers, fmt.Sprint(r.Number))
		}
	}
	switch {
	case len(numbers) == 0:
		return
	case len(numbers) > mostUndone:
		numbers = []string{"NUMBER"}
	}
	noun := "messages"
	if undo == admin.Send {
		noun = "intents"
	}
	fmt.Fprintln(c.Err, "undo: "+c.SuggestIn(st, slices.Concat([]string{noun, undo.Recorded()}, numbers, []string{"--because", "WHY"})...))
}

// dueConsumers returns the names of the consumers that have rows which the command made due.
func dueConsumers(done []operate.Result) (names []string) {
	for _, r := range done {
		if r.Result == operate.Due {
			names = append(names, r.Consumer)
		}
	}
	return sortedUnique(names)
}

// notify wakes the processes that run the named consumers, because rows are due. A process that misses the
// notification finds the rows at the next poll.
func notify(ctx context.Context, s *assembly.Store, consumers []string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for _, name := range consumers {
		_ = s.Notify(ctx, name)
	}
}

// printPaused prints which of the named consumers are paused.
func printPaused(ctx context.Context, c *command.CLI, s *assembly.Store, consumers []string) error {
	for _, name := range consumers {
		why, err := command.PausedWhy(ctx, s, name)
		if err != nil {
			return err
		}
		if why != "" {
			fmt.Fprintln(c.Err, why+";\nits messages wait until semel consumers resume resumes it")
		}
	}
	return nil
}

// concludeOrder prints the remarks after the results of a command, and returns the error for the exit code.
func concludeOrder(c *command.CLI, o operate.Order, done []operate.Result, stopped error) error {
	bad, left := 0, 0
	for _, r := range done {
		if !r.OK() {
			bad++
		}
		if r.Result == operate.Left {
			left++
		}
	}
	if left > 0 && !o.DryRun {
		fmt.Fprintf(c.Err, "%s: left %d conflicts whose first content is not finished\n", o.Verb.Recorded(), left)
	}
	if c.JSON {
		document := struct {
			Verb    string           `json:"verb"`
			DryRun  bool             `json:"dry_run"`
			Results []operate.Result `json:"results"`
			Failed  int              `json:"failed"`
		}{o.Verb.Recorded(), o.DryRun, append([]operate.Result{}, done...), bad}
		if err := c.WriteJSON(document); err != nil {
			return err
		}
	}
	if o.DryRun && !c.JSON && len(done) > 0 {
		fmt.Fprintln(c.Err, dryRunSummary(o.Verb, done))
	}
	switch {
	case stopped != nil:
		return command.Failed(stopped)
	case bad > 0 && o.DryRun:
		return command.Failed(fmt.Errorf("%s: %d of %d messages would be refused", o.Verb.Recorded(), bad, len(done)))
	case bad > 0:
		return command.Failed(fmt.Errorf("%s: %d of %d messages were not done", o.Verb.Recorded(), bad, len(done)))
	}
	return nil
}

// dryRunSummary describes the result of a dry run: the number of rows for each result, consumer and reason.
func dryRunSummary(verb admin.Verb, all []operate.Result) string {
	var parts []string
	for _, result := range []string{operate.Would, operate.Due, operate.Left, operate.Refused} {
		counts := tally{}
		for _, r := range all {
			if r.Result == result {
				counts.add(r.Consumer, r.Reason)
			}
		}
		for i, line := range counts.formatLines() {
			if i == 0 {
				what := result
				if result == operate.Would {
					what = wouldOf(verb)
				}
				parts = append(parts, fmt.Sprintf("%d %s:", counts.total(), what))
			}
			parts = append(parts, "  "+line)
		}
	}
	return strings.Join(parts, "\n")
}

// textIndent is the indentation of the second and later lines of a long text on a terminal.
const textIndent = 4

// longestID is the maximum width of an id on a terminal, in columns.
const longestID = 40

// pastTense describes what a command has done to a row.
func pastTense(v admin.Verb) string {
	switch v {
	case admin.Discard:
		return "discarded"
	case admin.Reopen:
		return "parked again"
	case admin.Suppress:
		return "parked, and not sent"
	case admin.Resolve:
		return "applied"
	case admin.Release:
		return "released, and due now"
	case admin.Skip:
		return "no message waits behind it any more"
	}
	return operate.Done
}

// wouldOf describes what a command would do to a row.
func wouldOf(v admin.Verb) string {
	if v == admin.Discard || v == admin.Reopen {
		return "would be " + pastTense(v)
	}
	return operate.Would
}

func resultLine(c *command.CLI, o operate.Order, r operate.Result) string {
	result := r.Result
	switch result {
	case operate.Done:
		result = pastTense(o.Verb)
	case operate.Would:
		result = wouldOf(o.Verb)
	}
	id := legible.Printable(r.ID)
	if c.OutTerminal {
		id = terminal.Cut(id, longestID)
	}
	line := fmt.Sprintf("%d %s %s: %s", r.Number, cmp.Or(legible.Printable(r.Consumer), "-"), cmp.Or(id, "-"), result)
	if r.Error != "" {
		line += ": " + legible.Printable(r.Error)
	}
	return line
}

func parseOutcome(text, done string) (admin.Resolution, error) {
	switch text {
	case done:
		return admin.ResolvedDone, nil
	case "not-" + done:
		return admin.ResolvedNotDone, nil
	case "":
		return 0, command.UsageError("--outcome is missing: give %s or not-%s; while the outcome is unknown, leave the message as it is", done, done)
	}
	return 0, command.UsageError("--outcome is %q; it is %s or not-%s", text, done, done)
}
