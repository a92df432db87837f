package stores

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// reapFlags has the flags of the retention commands.
type reapFlags struct {
	store    string
	dryRun   bool
	who, why string
}

func (f *reapFlags) add(c *command.CLI, cmd *cobra.Command) *cobra.Command {
	command.StoreFlag(cmd, &f.store)
	command.RefuseEmpty(cmd, "store")
	return c.WithConfig(c.WithConsumer(cmd, "only this consumer"))
}

func retentionCommand(c *command.CLI) *cobra.Command {
	return command.Group("retention", "Show and apply retention", retentionStatus(c), retentionRun(c), retentionMove(c), retentionForget(c), retentionPrint(c))
}

func retentionRun(c *command.CLI) *cobra.Command {
	f := &reapFlags{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Remove expired markers and rows once",
		Long: `Remove markers and ended rows that are older than the retention of their
consumers, once. Parked and unfinished messages stay.

semel run does this by itself. Use this command for consumers that seldom run,
or from a scheduler.

Exit codes: 0 done; 4 nothing was removed for a consumer, because copies can
arrive later than its retention, or because its policy disables the reaper.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.who, err = command.OperatorName(f.who); err != nil {
				return err
			}
			return f.withStores(c, cmd, func(ctx context.Context, a *assembly.Assembly) error { return reap(ctx, c, a, f) })
		},
	}
	command.DryRunFlag(cmd, &f.dryRun)
	command.RecordFlags(cmd, &f.who, &f.why)
	return f.add(c, cmd)
}

func (f *reapFlags) withStores(c *command.CLI, cmd *cobra.Command, work func(context.Context, *assembly.Assembly) error) error {
	ctx := cmd.Context()
	a, err := c.OpenBoxes(ctx, f.store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	if c.Consumer, err = c.ActiveName(ctx, a, c.Consumer); err != nil {
		return err
	}
	return work(ctx, a)
}

// forEachRetention calls the function do for each recorded retention, and returns the number of retentions.
func forEachRetention(ctx context.Context, c *command.CLI, a *assembly.Assembly, do func(s *assembly.Store, r *store.StoredRetention) error) (n int, err error) {
	for _, s := range a.Stores {
		all, err := s.Retentions(ctx, c.Consumer)
		if err != nil {
			return n, command.Failed(fmt.Errorf("store %s: %w", s.Name(), err))
		}
		for i := range all {
			n++
			if err := do(s, &all[i]); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// reap removes old markers of the chosen consumers and prints the number of removed markers.
func reap(ctx context.Context, c *command.CLI, a *assembly.Assembly, f *reapFlags) error {
	done := []operate.Reaped{}
	_, err := forEachRetention(ctx, c, a, func(s *assembly.Store, r *store.StoredRetention) error {
		if r.Keep == 0 && r.Bodies == 0 {
			return nil
		}
		live := c.Live()
		record := f.record(ctx, s, r)
		sum, err := operate.Reap(ctx, s.Name(), s, r, f.dryRun, func(sum operate.Reaped) error {
			live.Printf("%s: %d markers, %d bodies", sum.Consumer, sum.Markers, sum.Bodies)
			return record(sum)
		})
		live.End()
		done = append(done, sum)
		if err != nil {
			return command.Failed(fmt.Errorf("store %s: consumer %s: %w", s.Name(), legible.Printable(r.Consumer), err))
		}
		return nil
	})
	if err != nil && len(done) == 0 {
		return err // nothing was removed, so there is nothing to print
	}
	err = errors.Join(printReaped(c, done, f.dryRun), err)
	if err == nil && slices.ContainsFunc(done, func(r operate.Reaped) bool { return r.Stopped != "" }) {
		return command.Found(errors.New("nothing is removed of a consumer above, which says why"))
	}
	return err
}

// record returns a function that writes one audit record for a consumer after the first removal.
func (f *reapFlags) record(ctx context.Context, s *assembly.Store, r *store.StoredRetention) func(operate.Reaped) error {
	written := f.dryRun
	return func(sum operate.Reaped) error {
		if written || !sum.Due() {
			return nil
		}
		written = true
		what := "consumer " + r.Consumer
		if sum.Cutoff != nil {
			what += ", markers up to " + sum.Cutoff.Format(time.RFC3339)
		}
		return s.Record(ctx, store.Act{Verb: "reap", Who: f.who, Why: command.Because(what, f.why)})
	}
}

func printReaped(c *command.CLI, done []operate.Reaped, dry bool) error {
	if c.JSON {
		return c.WriteJSON(struct {
			DryRun    bool             `json:"dry_run"`
			Consumers []operate.Reaped `json:"consumers"`
		}{dry, done})
	}
	if len(done) == 0 {
		fmt.Fprintln(c.Err, "no consumer has recorded a retention: all is kept for ever")
		return nil
	}
	type view = operate.Reaped
	err := command.PrintTable(c, &command.Listing{}, done, output.Fixed(
		output.Text("STORE", func(v view) string { return v.Store }).IfVaried(),
		output.Flexible("CONSUMER", func(v view) string { return v.Consumer }),
		output.Text("UP TO", func(v view) string { return output.MaybeMoment(v.Cutoff) }),
		output.Number("MARKERS", func(v view) int64 { return v.Markers }),
		output.Text("DAYS", func(v view) string { return output.MaybeNumber(v.Days) }).If(slices.ContainsFunc(done, func(v view) bool { return v.Days != nil })),
		output.Number("ROWS", func(v view) int64 { return v.Rows }),
		output.Number("BODIES", func(v view) int64 { return v.Bodies }),
		output.Number("STAY", func(v view) int64 { return v.Kept }),
	))
	for _, r := range done {
		switch {
		case r.Stopped != "":
			c.Remark("%s: %s", legible.Printable(r.Consumer), legible.Printable(r.Stopped))
		case r.Elsewhere:
			fmt.Fprintf(c.Err, "%s: another process reaps for it now; nothing was done\n", legible.Printable(r.Consumer))
		}
	}
	if dry {
		fmt.Fprintln(c.Err, afterDryRun(done))
	}
	return err
}

// afterDryRun returns the sentence that is printed after a dry run. If the command would remove markers, the
// sentence contains the command without --dry-run, which removes the markers.
func afterDryRun(done []operate.Reaped) string {
	if slices.ContainsFunc(done, operate.Reaped.Due) {
		return "nothing was removed; semel retention run removes it"
	}
	return "nothing was removed"
}

func retentionStatus(c *command.CLI) *cobra.Command {
	f, l := &reapFlags{}, &command.Listing{}
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show retentions and the progress of the reaper",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.Check(c, cmd); err != nil {
				return err
			}
			return f.withStores(c, cmd, func(ctx context.Context, a *assembly.Assembly) error { return listKept(ctx, c, a, l) })
		},
	}
	l.Add(c, cmd, 0, "consumers")
	return f.add(c, cmd)
}

func listKept(ctx context.Context, c *command.CLI, a *assembly.Assembly, l *command.Listing) error {
	views := []operate.KeptView{}
	n, err := forEachRetention(ctx, c, a, func(s *assembly.Store, r *store.StoredRetention) error {
		if !l.Full(len(views)) {
			views = append(views, operate.NewKeptView(s.Name(), r))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return c.WriteJSON(struct {
			Consumers []operate.KeptView `json:"consumers"`
			Count     int                `json:"count"`
		}{views, n})
	}
	if err := command.PrintTable(c, l, views, keptColumns); err != nil {
		return err
	}
	for _, v := range views {
		for _, line := range v.Remarks() {
			c.Remark("%s: %s", legible.Printable(v.Consumer), legible.Printable(line))
		}
	}
	return nil
}

func keptColumns(views []operate.KeptView, wide bool) []output.Column[operate.KeptView] {
	type view = operate.KeptView
	store := func(v view) string { return v.Store }
	return []output.Column[view]{
		output.Text("STORE", store).IfVaried(),
		output.Flexible("CONSUMER", func(v view) string { return v.Consumer }),
		output.Text("KEEPS", func(v view) string { return spanOf(v.Keep, "for ever") }),
		output.Text("LATEST COPY", func(v view) string { return spanOf(v.Horizon, "-") }),
		output.Text("REAPED TO", func(v view) string { return output.MaybeMoment(v.Low) }),
		output.Text("BEHIND", func(v view) string { return spanOf(v.Behind, "-") }),
		output.Text("DAYS", func(v view) string { return daysOf(v.Days, wide) }).If(slices.ContainsFunc(views, func(v view) bool { return v.Days != nil })),
		output.Number("LAST DAY", func(v view) int64 { return v.LastDay }),
	}
}

// daysOf returns the number of daily partitions. In a wide table, daysOf adds the day of the oldest
// partition.
func daysOf(d *operate.DaysView, wide bool) string {
	if d == nil {
		return "-"
	}
	if !wide { // the date would make the table wider than a common terminal
		return fmt.Sprint(d.Kept)
	}
	return fmt.Sprintf("%d from %s", d.Kept, d.First.Format(time.DateOnly))
}

// spanOf formats a number of seconds. The parameter zero is the text for 0.
func spanOf(seconds float64, zero string) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d <= 0:
		return zero
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%dd", d.Round(time.Hour)/(24*time.Hour))
}

func retentionForget(c *command.CLI) *cobra.Command {
	f := &reapFlags{}
	var lane, why, who string
	cmd := &cobra.Command{
		Use:               "forget NAME --lane LANE --because TEXT",
		Short:             "Forget a lane that no longer exists",
		ValidArgsFunction: c.ConsumerWord,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" || lane == "" {
				return command.UsageError("name one consumer, and --lane: semel retention status names the lane that holds a consumer's reaper")
			}
			c.Consumer = args[0]
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.CheckRecord(&who, why, f.dryRun); err != nil {
				return err
			}
			return f.withStores(c, cmd, func(ctx context.Context, a *assembly.Assembly) error {
				return forgetLane(ctx, c, a, lane, store.Act{Verb: "forget lane", Who: who, Why: why}, f.dryRun)
			})
		},
	}
	cmd.Flags().StringVar(&lane, "lane", "", "the lane, such as payments/7")
	command.DryRunFlag(cmd, &f.dryRun)
	command.RecordFlags(cmd, &who, &why)
	command.StoreFlag(cmd, &f.store)
	command.RefuseEmpty(cmd, "store", "lane")
	return c.WithConfig(cmd)
}

// forgotten is the JSON output of the command that removes a lane's position.
type forgotten struct {
	DryRun   bool   `json:"dry_run"`
	Store    string `json:"store"`
	Consumer string `json:"consumer"`
	Lane     string `json:"lane"`
}

// forgetLane removes the position of a lane from the one store that knows the consumer.
func forgetLane(ctx context.Context, c *command.CLI, a *assembly.Assembly, lane string, act store.Act, dry bool) error {
	var in []*assembly.Store
	if _, err := forEachRetention(ctx, c, a, func(s *assembly.Store, _ *store.StoredRetention) error {
		in = append(in, s)
		return nil
	}); err != nil {
		return err
	}
	switch {
	case len(in) == 0:
		return command.Failed(fmt.Errorf("no store knows a retention of consumer %s, so that no lane holds its reaper; semel retention status shows which there are", c.Consumer))
	case len(in) > 1:
		return command.UsageError("several stores have consumer %s; name one with --store", c.Consumer)
	}
	if !dry {
		act.Why = fmt.Sprintf("lane %s of consumer %s: %s", lane, c.Consumer, act.Why)
		if err := in[0].ForgetLane(ctx, c.Consumer, lane, act); err != nil {
			return command.Failed(fmt.Errorf("store %s: %w", in[0].Name(), err))
		}
	}
	if c.JSON {
		return c.WriteJSON(forgotten{dry, in[0].Name(), c.Consumer, lane})
	}
	done := "is forgotten"
	if dry {
		done = "would be forgotten"
	}
	_, err := fmt.Fprintf(c.Out, "%s: lane %s %s\n", legible.Printable(c.Consumer), legible.Printable(lane), done)
	return err
}
