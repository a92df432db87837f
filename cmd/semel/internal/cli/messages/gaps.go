package messages

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/admin"
	"github.com/spf13/cobra"
)

func gapsCommand(c *command.CLI) *cobra.Command {
	return command.Group("gaps", "Show and repair missing versions", gapsList(c), gapsShow(c), gapsSkip(c), gapsBackfill(c))
}

type streamFlags struct{ store, source, stream string }

func (f *streamFlags) add(c *command.CLI, cmd *cobra.Command, stream string) *cobra.Command {
	flags := cmd.Flags()
	flags.StringVar(&f.store, "store", "", "a store of the policy, postgres://… or sqlite:FILE")
	flags.StringVar(&f.source, "source", "", "only streams of this source")
	flags.StringVar(&f.stream, "stream", "", stream)
	command.RefuseEmpty(cmd, "store", "consumer", "stream")
	return c.WithConfig(c.WithConsumer(cmd, "only streams of this consumer"))
}

// streamFilter returns the stream filter for the given flags. An empty --source chooses streams without
// a source.
func (f *streamFlags) streamFilter(c *command.CLI, cmd *cobra.Command) operate.StreamFilter {
	chosen := operate.StreamFilter{Consumer: c.Consumer, Stream: f.stream}
	if cmd.Flags().Changed("source") {
		chosen.Source = &f.source
	}
	return chosen
}

// withBoxes opens the chosen stores and calls the function work with their inboxes.
func (f *streamFlags) withBoxes(c *command.CLI, cmd *cobra.Command, work func(context.Context, *assembly.Assembly, []operate.Box) error) error {
	ctx := cmd.Context()
	a, err := c.OpenBoxes(ctx, f.store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	if c.Consumer, err = c.ActiveName(ctx, a, c.Consumer); err != nil {
		return err
	}
	var boxes []operate.Box
	for _, s := range a.Stores {
		boxes = append(boxes, command.BoxOf(s))
	}
	return work(ctx, a, boxes)
}

// streamIn is a stream and the inbox of its store.
type streamIn struct {
	box    operate.Box
	stream admin.StoredStream
}

func (s streamIn) view() operate.StreamView { return operate.NewStreamView(s.box.Store, s.stream) }

func streamsIn(ctx context.Context, boxes []operate.Box, f operate.StreamFilter) ([]streamIn, error) {
	var all []streamIn
	for _, box := range boxes {
		found, err := box.StreamsOf(ctx, f)
		if err != nil {
			return nil, command.Failed(err)
		}
		for _, s := range found {
			all = append(all, streamIn{box, s})
		}
	}
	return all, nil
}

// oneStream returns the stream with the given name. If several sources or consumers have a stream of this
// name, oneStream returns an error.
func oneStream(ctx context.Context, boxes []operate.Box, f operate.StreamFilter) (streamIn, error) {
	all, err := streamsIn(ctx, boxes, f)
	switch {
	case err != nil:
		return streamIn{}, err
	case len(all) == 0:
		return streamIn{}, command.Failed(fmt.Errorf("no stream %q is known; semel gaps ls shows those with waiting messages", f.Stream))
	case len(all) > 1:
		var which []string
		for _, s := range all[:min(len(all), 5)] {
			which = append(which, fmt.Sprintf("--store %s --consumer %s --source %q", s.box.Store, s.stream.Consumer, s.stream.Source))
		}
		return streamIn{}, command.UsageError("%d streams have the name %q; say which: %s", len(all), f.Stream, strings.Join(which, ", or "))
	}
	return all[0], nil
}

func gapsList(c *command.CLI) *cobra.Command {
	f, l := &streamFlags{}, &command.Listing{}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List streams with missing versions",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.Check(c, cmd); err != nil {
				return err
			}
			return f.withBoxes(c, cmd, func(ctx context.Context, _ *assembly.Assembly, boxes []operate.Box) error {
				return listGaps(ctx, c, boxes, f.streamFilter(c, cmd), l)
			})
		},
	}
	l.Add(c, cmd, 0, "streams")
	return f.add(c, cmd, "only this stream")
}

// listGaps prints the streams to standard output and their number to standard error.
func listGaps(ctx context.Context, c *command.CLI, boxes []operate.Box, f operate.StreamFilter, l *command.Listing) error {
	f.Gaps = true
	all, err := streamsIn(ctx, boxes, f)
	if err != nil {
		return err
	}
	views := []operate.StreamView{}
	for _, s := range all {
		if !l.Full(len(views)) {
			views = append(views, s.view())
		}
	}
	return command.PrintList(c, l, "streams", "stream", views, len(all), streamColumns)
}

func streamColumns(views []operate.StreamView, _ bool) []output.Column[operate.StreamView] {
	type view = operate.StreamView
	store := func(v view) string { return v.Store }
	consumer := func(v view) string { return v.Consumer }
	sourced := slices.ContainsFunc(views, func(v view) bool { return v.Source != "" })
	return []output.Column[view]{
		output.Text("STORE", store).IfVaried(),
		output.Flexible("CONSUMER", consumer),
		output.Flexible("SOURCE", func(v view) string { return v.Source }).If(sourced),
		output.Flexible("STREAM", view.Name),
		output.Number("LAST", func(v view) int64 { return v.Last }),
		output.Number("BLOCKED FROM", func(v view) int64 { return v.First }),
		output.Number("ROWS", func(v view) int64 { return v.Blocked }),
		output.Text("AGE", func(v view) string {
			if v.Oldest == nil {
				return "-"
			}
			return output.Age(*v.Oldest, time.Now())
		}),
	}
}

func gapsShow(c *command.CLI) *cobra.Command {
	f, l := &streamFlags{}, &command.Listing{}
	cmd := &cobra.Command{
		Use:   "show --stream NAME",
		Short: "Show a stream and its waiting messages",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.stream == "" {
				return command.UsageError("--stream is missing: semel gaps ls shows which there are")
			}
			if err := l.Check(c, cmd); err != nil {
				return err
			}
			return f.withBoxes(c, cmd, func(ctx context.Context, _ *assembly.Assembly, boxes []operate.Box) error {
				return showGap(ctx, c, boxes, f.streamFilter(c, cmd), l)
			})
		},
	}
	l.Add(c, cmd, versionsShown, "rows")
	return f.add(c, cmd, "the stream, also as it is printed")
}

// versionsShown is the default number of rows that are printed for a stream.
const versionsShown = 100

// showGap prints one stream and its rows.
func showGap(ctx context.Context, c *command.CLI, boxes []operate.Box, f operate.StreamFilter, l *command.Listing) error {
	one, err := oneStream(ctx, boxes, f)
	if err != nil {
		return err
	}
	detail, err := one.box.Stream(ctx, one.stream, l.Limit)
	if err != nil {
		return command.Failed(err)
	}
	if c.JSON {
		return c.WriteJSON(detail)
	}
	if err := writeStream(c.Out, detail); err != nil {
		return command.Failed(err)
	}
	if len(detail.Rows) == 0 {
		return nil
	}
	fmt.Fprintln(c.Out)
	if err := command.PrintTable(c, l, detail.Rows, versionColumns); err != nil {
		return err
	}
	if detail.More {
		fmt.Fprintf(c.Err, "the first %d, by version; --limit 0 shows all\n", len(detail.Rows))
	}
	first := c.SuggestIn(one.box.Store, "messages", "show", fmt.Sprint(detail.Rows[0].Number))
	fmt.Fprintf(c.Err, "show the first of them: %s\n", terminal.Line(first))
	return nil
}

// versionColumns returns the columns of the table of a stream's rows.
func versionColumns(views []operate.View, wide bool) []output.Column[operate.View] {
	type view = operate.View
	return []output.Column[view]{
		output.Number("NUMBER", func(v view) int64 { return v.Number }),
		output.Number("VERSION", func(v view) int64 { return v.Version }),
		output.Text("STATE", stateOf),
		output.Flexible("REASON", func(v view) string { return string(v.Reason) }),
		output.Flexible("ID", IDOf),
		output.Text("AGE", ageOf),
		output.Flexible("LAST ERROR", func(v view) string { return v.Last }).If(wide || slices.ContainsFunc(views, func(v view) bool { return v.Last != "" })),
	}
}

// notifyStreams notifies the processes that run the consumers of the changed streams.
func notifyStreams(ctx context.Context, a *assembly.Assembly, done []operate.Skipped) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	told := map[[2]string]bool{}
	for _, d := range done {
		for _, s := range a.Stores {
			if who := [2]string{d.Store, d.Consumer}; d.Result == operate.Done && s.Name() == d.Store && !told[who] {
				told[who] = true
				_ = s.Notify(ctx, d.Consumer)
			}
		}
	}
}
