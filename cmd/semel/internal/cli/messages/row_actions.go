package messages

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// follow is what an act does after its rows were changed.
type follow struct {
	// wait: wait until a running consumer has processed the rows; run: process them here.
	wait, run bool
}

// carry carries out an order and prints what became of each row.
func carry(ctx context.Context, c *command.CLI, o operate.Order, f *filter, then follow) error {
	a, err := c.OpenBox(ctx, f.store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	box := command.BoxOf(a.Stores[0])
	if o.Filter.Consumer, err = c.ActiveName(ctx, a, o.Filter.Consumer); err != nil {
		return err
	}
	p := a.Policy()
	if then.run && len(p.Consumers) == 0 {
		return command.UsageError("--run needs the policy of the consumer, which has its handler: --config FILE")
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
		if !c.JSON && (r.Result != operate.Due || then == follow{}) {
			fmt.Fprintln(c.Out, resultLine(c, r))
		}
	}
	if len(done) == 0 && stopped == nil {
		fmt.Fprintln(c.Err, "0 rows match")
		if err := pointAtReasons(ctx, c, a, o.Filter); err != nil {
			return err
		}
	}
	if stopped == nil && !o.DryRun && slices.ContainsFunc(done, due) {
		done, stopped = followUp(ctx, c, a, box, done, then)
	}
	return concludeActs(c, o, done, stopped)
}

func due(r operate.Result) bool { return r.Result == operate.Due }

// notify wakes the processes that run the consumers of rows that are due. A process that
// misses it finds the rows at its next poll.
func notify(ctx context.Context, s *assembly.Store, done []operate.Result) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	told := map[string]bool{}
	for _, r := range done {
		if due(r) && !told[r.Consumer] {
			told[r.Consumer] = true
			_ = s.Notify(ctx, r.Consumer)
		}
	}
}

// followUp works on the rows that were made due, or waits for whoever does, and
// prints what became of them.
func followUp(ctx context.Context, c *command.CLI, a *assembly.Assembly, box operate.Box, done []operate.Result, then follow) ([]operate.Result, error) {
	if !then.run {
		notify(ctx, a.Stores[0], done)
	}
	if err := printPaused(ctx, c, a.Stores[0], done, then); err != nil {
		return done, err
	}
	switch {
	case then.run:
		if err := work(ctx, c, a, done); err != nil {
			return done, err
		}
	case !then.wait:
		fmt.Fprintln(c.Err, "a running consumer will process them;\n--wait waits for that, --run works on them here")
		return done, nil
	}
	for asked := 0; ; asked++ {
		now, err := box.Endings(ctx, done)
		if err != nil {
			return done, err
		}
		for i, r := range now {
			if !c.JSON && due(done[i]) && !due(r) {
				fmt.Fprintln(c.Out, resultLine(c, r))
			}
		}
		if done = now; then.run || !slices.ContainsFunc(done, due) {
			return done, nil
		}
		if asked == tellWaiting {
			fmt.Fprintln(c.Err, "still waiting for a running consumer; --run processes them in this command")
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return done, ctx.Err()
		}
	}
}

// askAgain is how often rows that are worked on elsewhere are looked at, and
// tellWaiting after how many looks it is said that none has ended.
const (
	askAgain    = 500 * time.Millisecond
	tellWaiting = 10
)

// work has the consumers of rows work on those that are due.
func work(ctx context.Context, c *command.CLI, a *assembly.Assembly, done []operate.Result) error {
	rows := map[string][]int64{}
	for _, r := range done {
		if due(r) {
			rows[r.Consumer] = append(rows[r.Consumer], r.Number)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if why, err := command.PausedWhy(ctx, a.Stores[0], name); why != "" || err != nil {
			return cmp.Or(err, fmt.Errorf("%s: its rows are due, and wait until semel consumers resume lets it go on", why))
		}
		worker, err := a.Worker(ctx, name)
		if err != nil {
			return err
		}
		if err := worker.Work(ctx, rows[name]...); err != nil {
			return err
		}
	}
	return nil
}

func concludeActs(c *command.CLI, o operate.Order, done []operate.Result, stopped error) error {
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
		fmt.Fprintf(c.Err, "%s: left %d conflicts whose first content is not closed\n", o.Verb, left)
	}
	if c.JSON {
		document := struct {
			Verb    admin.Verb       `json:"verb"`
			DryRun  bool             `json:"dry_run"`
			Results []operate.Result `json:"results"`
			Failed  int              `json:"failed"`
		}{o.Verb, o.DryRun, append([]operate.Result{}, done...), bad}
		if err := c.WriteJSON(document); err != nil {
			return err
		}
	}
	if o.DryRun && !c.JSON && len(done) > 0 {
		fmt.Fprintln(c.Err, foreseen(done))
	}
	switch {
	case stopped != nil:
		return command.Failed(stopped)
	case bad > 0 && o.DryRun:
		return command.Failed(fmt.Errorf("%s: %d of %d messages would be refused", o.Verb, bad, len(done)))
	case bad > 0:
		return command.Failed(fmt.Errorf("%s: %d of %d messages were not done", o.Verb, bad, len(done)))
	}
	return nil
}

// foreseen counts by consumer and reason what a dry run found.
func foreseen(all []operate.Result) string {
	var parts []string
	for _, result := range []string{operate.Would, operate.Due, operate.Left, operate.Refused} {
		counts := tally{}
		for _, r := range all {
			if r.Result == result {
				counts.add(r.Consumer, r.Reason)
			}
		}
		for i, line := range counts.lines() {
			if i == 0 {
				parts = append(parts, fmt.Sprintf("%d %s:", counts.total(), result))
			}
			parts = append(parts, "  "+line)
		}
	}
	return strings.Join(parts, "\n")
}

// longestID is how many columns an identity takes on a terminal.
const longestID = 40

func resultLine(c *command.CLI, r operate.Result) string {
	id := legible.Printable(r.ID)
	if c.OutTerminal {
		id = terminal.Cut(id, longestID)
	}
	line := fmt.Sprintf("%d %s %s: %s", r.Number, cmp.Or(legible.Printable(r.Consumer), "-"), cmp.Or(id, "-"), r.Result)
	if r.Error != "" {
		line += ": " + legible.Printable(r.Error)
	}
	return line
}

// rowResolve records the outcome of calls whose outcome is unknown. done is the word of --outcome for a call
// that took effect; the word for a call that did not is not-DONE.
func rowResolve(c *command.CLI, done string) *cobra.Command {
	f := &filter{legal: admin.Resolve.From()}
	var all, dryRun bool
	var why, who, outcome string
	cmd := &cobra.Command{
		Use:   "resolve [NUMBER...] --outcome WORD --because TEXT",
		Short: "Record the outcome of calls",
		Long: `Record the outcome of calls.

First ask the other side whether it was ` + done + `. With ` + done + ` the message is
completed without another call. With not-` + done + ` the message is retried at once,
as if no call had been made. ` + attemptsStay,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := parseOutcome(outcome, done)
			if err != nil {
				return err
			}
			chosen, err := f.targets(c, cmd, all, args)
			if err != nil {
				return err
			}
			if err := command.CheckRecord(&who, why, dryRun); err != nil {
				return err
			}
			order := operate.Order{Verb: admin.Resolve, Outcome: found, Filter: chosen, Who: who, Why: why, DryRun: dryRun}
			return carry(cmd.Context(), c, order, f, follow{})
		},
	}
	cmd.Flags().StringVar(&outcome, "outcome", "", "what you found out: "+done+" or not-"+done)
	command.CompleteFlag(cmd, "outcome", []string{done, "not-" + done})
	cmd.Flags().BoolVar(&all, "all", false, "all rows that match the filters, instead of numbers")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would change")
	command.YesFlag(cmd, &f.yes)
	command.RecordFlags(cmd, &who, &why)
	return c.WithConfig(f.add(c, cmd, store.StateParked))
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

// printPaused prints which consumers of rows that are due are paused, unless this command
// works on the rows.
func printPaused(ctx context.Context, c *command.CLI, s *assembly.Store, done []operate.Result, then follow) error {
	told := map[string]bool{}
	for _, r := range done {
		if !due(r) || told[r.Consumer] || then.run {
			continue
		}
		told[r.Consumer] = true
		why, err := command.PausedWhy(ctx, s, r.Consumer)
		if err != nil {
			return err
		}
		if why != "" {
			fmt.Fprintln(c.Err, why+";\nits rows wait until semel consumers resume lets it go on")
		}
	}
	return nil
}
