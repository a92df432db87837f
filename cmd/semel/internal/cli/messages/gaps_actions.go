package messages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/running"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

func gapsSkip(c *command.CLI) *cobra.Command {
	f, order := &streamFlags{}, operate.Skip{}
	var all, yes bool
	cmd := &cobra.Command{
		Use:   "skip --stream NAME --because TEXT",
		Short: "Skip missing versions of a stream",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			switch to := cmd.Flags().Changed("to"); {
			case all == (f.stream != ""):
				return command.UsageError("give --stream NAME, or --all for all that --consumer, --source and --store choose")
			case all && to:
				return command.UsageError("give --all or --to, not both: each stream has versions of its own")
			case to && (order.To < 1 || order.To > versions.Max):
				return command.UsageError("--to %d is no version; they are from 1 to %d", order.To, int64(versions.Max))
			}
			if err := command.CheckRecord(&order.Who, order.Why, order.DryRun); err != nil {
				return err
			}
			return f.withBoxes(c, cmd, func(ctx context.Context, a *assembly.Assembly, boxes []operate.Box) error {
				order.Filter = f.streamFilter(c, cmd)
				done, err := skip(ctx, c, boxes, order, yes)
				notifyStreams(ctx, a, done)
				return err
			})
		},
	}
	cmd.Flags().Int64Var(&order.To, "to", 0, "skip to this version (default: the last missing)")
	cmd.Flags().BoolVar(&all, "all", false, "all streams with missing versions")
	cmd.Flags().BoolVar(&order.DryRun, "dry-run", false, "only show what would change")
	command.YesFlag(cmd, &yes)
	command.RecordFlags(cmd, &order.Who, &order.Why)
	return f.add(c, cmd, "the stream")
}

// skip advances the named stream, or all streams that the filter chooses, and prints the result for each
// stream.
func skip(ctx context.Context, c *command.CLI, boxes []operate.Box, o operate.Skip, yes bool) ([]operate.Skipped, error) {
	chosen := map[string][]admin.StoredStream{}
	if o.Filter.Stream != "" {
		one, err := oneStream(ctx, boxes, o.Filter)
		if err != nil {
			return nil, err
		}
		chosen[one.box.Store] = []admin.StoredStream{one.stream}
	} else {
		o.Filter.Gaps = true
		all, err := streamsIn(ctx, boxes, o.Filter)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			chosen[s.box.Store] = append(chosen[s.box.Store], s.stream)
		}
		if everything := o.Filter.Consumer == "" && o.Filter.Source == nil; everything && !yes && !o.DryRun {
			if err := confirmSkip(c, all); err != nil {
				return nil, err
			}
		}
	}
	var done []operate.Skipped
	for _, box := range boxes {
		for d, err := range box.Skip(ctx, o, chosen[box.Store]) {
			if err != nil {
				return done, concludeSkips(c, o, done, err)
			}
			if done = append(done, d); !c.JSON {
				fmt.Fprintln(c.Out, skipLine(c, d))
			}
		}
	}
	return done, concludeSkips(c, o, done, nil)
}

// confirmSkip asks for confirmation before the command advances streams of all consumers.
func confirmSkip(c *command.CLI, all []streamIn) error {
	if len(all) == 0 {
		return nil
	}
	counts := tally{}
	for _, s := range all {
		counts.add(s.stream.Consumer, "")
	}
	var lines []string
	for _, name := range counts.consumers() {
		lines = append(lines, fmt.Sprintf("%s: %d", legible.Printable(name), counts.count(name)))
	}
	return confirmAll(c, "skip versions of", "stream", len(all), lines)
}

func skipLine(c *command.CLI, d operate.Skipped) string {
	name := legible.Printable(d.Name())
	if c.OutTerminal {
		name = terminal.Cut(name, longestID)
	}
	line := fmt.Sprintf("%s %s: %d to %d: %s", legible.Printable(d.Consumer), name, d.Last, d.To, d.Result)
	if d.Error != "" {
		line += ": " + legible.Printable(d.Error)
	}
	return line
}

func concludeSkips(c *command.CLI, o operate.Skip, done []operate.Skipped, stopped error) error {
	bad, freed := 0, false
	for _, d := range done {
		if !d.OK() {
			bad++
			continue
		}
		freed = freed || d.Blocked > 0
		if len(d.Passed) > 0 {
			fmt.Fprintf(c.Err, "%s: skipped, too, and without an effect: %s\n", legible.Printable(d.Name()), skippedRows(d))
		}
	}
	switch {
	case len(done) == 0 && stopped == nil:
		fmt.Fprintln(c.Err, "0 streams match")
	case freed && o.DryRun:
		fmt.Fprintln(c.Err, "messages that wait for a skipped version would be due now;\na running consumer would process them")
	case freed:
		fmt.Fprintln(c.Err, "messages that waited for a skipped version are due now;\na running consumer will process them")
	}
	if c.JSON {
		document := struct {
			Verb    string            `json:"verb"`
			DryRun  bool              `json:"dry_run"`
			Results []operate.Skipped `json:"results"`
			Failed  int               `json:"failed"`
		}{"skip", o.DryRun, append([]operate.Skipped{}, done...), bad}
		if err := c.WriteJSON(document); err != nil {
			return err
		}
	}
	switch {
	case stopped != nil:
		return command.Failed(stopped)
	case bad > 0 && o.DryRun:
		return command.Failed(fmt.Errorf("skip: %d of %d streams would be refused", bad, len(done)))
	case bad > 0:
		return command.Failed(fmt.Errorf("skip: %d of %d streams were not moved", bad, len(done)))
	}
	return nil
}

func writeStream(w io.Writer, d operate.StreamDetail) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, field := range []struct{ name, value string }{
		{"consumer", d.Consumer},
		{"source", d.Source},
		{"stream", d.Name()},
		{"last version", fmt.Sprint(d.Last)},
		{"missing", missingVersions(d)},
		{"wait for it", waitsFor(d)},
	} {
		if field.value != "" {
			fmt.Fprintf(table, "%s\t%s\n", field.name, legible.Printable(field.value))
		}
	}
	return table.Flush()
}

// mostMissing is the maximum number of printed ranges of missing versions.
const mostMissing = 5

// missingVersions returns the ranges of missing versions as text.
func missingVersions(d operate.StreamDetail) string {
	var ranges []string
	for _, m := range d.Missing {
		switch {
		case len(ranges) == mostMissing:
			ranges = append(ranges, "…")
		case m.From == m.To:
			ranges = append(ranges, fmt.Sprint(m.From))
		default:
			ranges = append(ranges, fmt.Sprintf("%d to %d", m.From, m.To))
		}
	}
	return strings.Join(ranges, ", ")
}

// skippedRows returns the numbers of the skipped rows as text.
func skippedRows(d operate.Skipped) string {
	var numbers []string
	for _, n := range d.Passed {
		numbers = append(numbers, fmt.Sprint(n))
	}
	if len(numbers) == 1 {
		return "row " + numbers[0]
	}
	return "rows " + strings.Join(numbers, ", ")
}

func waitsFor(d operate.StreamDetail) string {
	if d.Blocked == 0 {
		return ""
	}
	return fmt.Sprintf("%s, the first from version %d, since %s", output.Counted(int(d.Blocked), int(d.Blocked), "row"), d.First, output.Moment(*d.Oldest))
}

// backfill has the flags of the command backfill, which delivers messages from a file to a consumer.
type backfill struct{ file, format, who, why string }

func gapsBackfill(c *command.CLI) *cobra.Command {
	var b backfill
	cmd := &cobra.Command{
		Use:   "backfill NAME --file FILE --because TEXT",
		Short: "Add missing messages from a file",
		Long: `Process messages from a file as if the consumer's source had delivered them.
Messages that were applied before are duplicates, a missing version unblocks
the versions that wait for it, and messages that cannot be applied are parked.
The source is not touched, and the consumer may run meanwhile.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if b.file == "" {
				return command.UsageError("--file is missing: name a file with a message a line, or - for standard input")
			}
			if err := command.CheckRecord(&b.who, b.why, false); err != nil {
				return err
			}
			return runBackfill(cmd.Context(), c, b)
		},
	}
	cmd.Flags().StringVar(&b.file, "file", "", "file with one message a line; - is standard input")
	cmd.Flags().StringVar(&b.format, "format", file.Envelope.String(), "envelope, cloudevents or json")
	command.RecordFlags(cmd, &b.who, &b.why)
	command.RefuseEmpty(cmd, "file", "format")
	return c.WithConfig(c.ForConsumer(cmd))
}

// runBackfill writes an audit record, delivers the messages of the file, and prints the results.
func runBackfill(ctx context.Context, c *command.CLI, b backfill) error {
	g, err := c.OpenSent(ctx, b.file, b.format, nil)
	if err != nil {
		return err
	}
	defer g.Close()
	a, of := g.Assembly, g.Of
	reader, err := a.Reader(ctx, of.Name, file.Stdin(g.In, file.Options{Format: g.Format, Lane: "backfill"}))
	if err != nil {
		return command.Failed(err)
	}
	if err := recordBackfill(ctx, c, a, of, b); err != nil {
		return command.Failed(err)
	}
	summary, err := running.All(ctx, map[string]running.Consumer{of.Name: reader}, nil, nil)
	if c.JSON {
		err = errors.Join(command.Failed(err), c.WriteJSON(summary))
	} else {
		err = errors.Join(command.Failed(err), summary.Write(c.Out))
	}
	counts := summary.Consumers[of.Name]
	if aside := counts.Parked + counts.Conflicts + counts.DeadLettered; err == nil && aside > 0 {
		err = command.Failed(fmt.Errorf("backfill: %d of %d messages were parked; semel messages ls shows them", aside, counts.Deliveries))
	}
	return err
}

// recordBackfill writes the audit record. Call recordBackfill before the first message is delivered.
func recordBackfill(ctx context.Context, c *command.CLI, a *assembly.Assembly, of *policy.Consumer, b backfill) error {
	for _, s := range a.Stores {
		if s.Name() == of.Store {
			return s.Record(ctx, store.Act{Verb: "backfill", Who: b.who, Why: fmt.Sprintf("consumer %s, file %s: %s", of.Name, b.file, b.why)})
		}
	}
	return nil
}
