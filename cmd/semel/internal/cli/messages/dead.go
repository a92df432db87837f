// Package messages has the commands that show rows of messages, act on them and erase what they
// said.
package messages

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// aside are the states of a message that failed for good.
func aside() []store.RowState {
	return []store.RowState{store.StateParked, store.StateDeadLettered}
}

func deadCommand(c *command.CLI) *cobra.Command {
	return command.Group("dead", "Show and repair dead letters",
		deadList(c), deadShow(c), deadEdit(c), deadReplay(c), deadDiscard(c))
}

// addGroup adds the flag for a failure group.
func (f *filter) addGroup(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.group, "group", "", "only dead letters of this failure group")
}

func deadDiscard(c *command.CLI) *cobra.Command {
	f := &filter{}
	cmd := rowActOf(c, f, admin.Discard, aside()...)
	f.addGroup(cmd)
	return cmd
}

func deadList(c *command.CLI) *cobra.Command {
	f, l := &filter{}, &command.Listing{}
	var letters bool
	var topic string
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List failure groups, or dead letters with filters",
		Long: `List messages that failed for good: parked or dead-lettered, and not done.

Without filters, count failure groups: dead letters of one consumer and reason
with similar errors. With --group, another filter or --letters, list the dead
letters. With --topic, list those of a topic with their state in the store: set
aside, waiting, applied, discarded, conflict, unknown here, no identity,
foreign (of another consumer, or of none), or cut.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if topic != "" {
				if err := l.Check(c, cmd); err != nil {
					return err
				}
				return listTopic(cmd.Context(), c, topic, f, l)
			}
			return look(c, cmd, f, l, func(ctx context.Context, c *command.CLI, a *assembly.Assembly, chosen store.RowFilter, l *command.Listing) error {
				if letters || f.single(cmd) {
					return listLetters(ctx, c, a, chosen, f.group, l)
				}
				_, err := summarizeBy(ctx, c, a, chosen, l, "letter", operate.Box.Failures)
				return err
			})
		},
	}
	l.Add(c, cmd, 0, "lines")
	cmd.Flags().BoolVar(&letters, "letters", false, "list dead letters instead of groups")
	f.addGroup(cmd)
	topicFlag(cmd, &topic)
	return c.WithConfig(f.add(c, cmd, aside()...))
}

// single reports whether the filters ask for single letters.
func (f *filter) single(cmd *cobra.Command) bool {
	for _, name := range []string{"group", "reason", "type", "id", "before"} {
		if cmd.Flags().Changed(name) {
			return true
		}
	}
	return false
}

// listLetters prints the letters, and on stderr how many there are.
func listLetters(ctx context.Context, c *command.CLI, a *assembly.Assembly, f store.RowFilter, group string, l *command.Listing) error {
	var err error
	if f.Consumer, err = c.ActiveName(ctx, a, f.Consumer); err != nil {
		return err
	}
	views, count := []operate.View{}, 0
	for _, s := range a.Stores {
		box := command.BoxOf(s)
		for row, err := range box.Rows(ctx, f) {
			if err != nil {
				return command.Failed(err)
			}
			if group != "" && operate.Failure(row) != group {
				continue
			}
			if count++; !l.Full(len(views)) {
				views = append(views, operate.NewView(box.Store, row))
			}
		}
	}
	if c.JSON {
		return c.WriteJSON(map[string]any{"letters": views, "count": count})
	}
	if err := command.PrintTable(c, l, views, rowColumns); err != nil {
		return err
	}
	fmt.Fprintln(c.Err, output.Counted(len(views), count, "letter"))
	if count == 0 {
		return pointAtReasons(ctx, c, a, f)
	}
	return nil
}

// replayed is a replay as one document.
type replayed struct {
	Verb   string `json:"verb"`
	DryRun bool   `json:"dry_run"`
	// Prediction and Happened count letters by what was said of them before, and after.
	Prediction map[operate.Fate]int `json:"foretold"`
	Happened   map[operate.Fate]int `json:"happened,omitempty"`
	// Changed are letters of which something else happened than was foretold.
	Changed int              `json:"changed"`
	Letters []operate.Letter `json:"letters"`
}

// concludeReplay prints what was foretold, what happened, and what differs.
func concludeReplay(c *command.CLI, r *deadReplaying, letters []operate.Letter, stopped error) error {
	done := replayed{Verb: "replay", DryRun: r.dryRun, Prediction: map[operate.Fate]int{}, Letters: append([]operate.Letter{}, letters...)}
	bad := 0
	for _, l := range letters {
		done.Prediction[l.Prediction]++
		if l.Happened != "" {
			if done.Happened == nil {
				done.Happened = map[operate.Fate]int{}
			}
			done.Happened[l.Happened]++
		}
		if l.Changed() {
			done.Changed++
		}
		if !l.OK() {
			bad++
		}
	}
	if c.JSON {
		if err := c.WriteJSON(done); err != nil {
			return err
		}
	} else {
		printReplay(c, done)
	}
	switch {
	case stopped != nil:
		return command.Failed(stopped)
	case bad > 0 && r.dryRun:
		return command.Failed(fmt.Errorf("replay: %d of %d letters would not be applied", bad, len(letters)))
	case bad > 0:
		return command.Failed(fmt.Errorf("replay: %d of %d letters were not applied", bad, len(letters)))
	}
	return nil
}

func printReplay(c *command.CLI, done replayed) {
	if len(done.Letters) == 0 {
		return
	}
	for _, l := range done.Letters {
		if !l.OK() || l.Changed() {
			fmt.Fprintln(c.Out, letterLine(c, l))
		}
	}
	if done.DryRun {
		fmt.Fprintln(c.Out, "foretold: "+countsOf(done.Prediction, done.Letters, func(l operate.Letter) operate.Fate { return l.Prediction }))
	}
	if done.Happened != nil {
		fmt.Fprintln(c.Out, "happened: "+countsOf(done.Happened, nil, nil))
		if done.Changed == 0 {
			fmt.Fprintln(c.Out, "all is as it was foretold")
		} else {
			fmt.Fprintf(c.Out, "%s not as foretold\n", output.WithVerb(done.Changed, "letter", "is", "are"))
		}
	}
}

func letterLine(c *command.CLI, l operate.Letter) string {
	id := legible.Printable(cmp.Or(l.ID, output.Base64Named(l.IDBase64), "-"))
	if c.OutTerminal {
		id = terminal.Cut(id, longestID)
	}
	line := fmt.Sprintf("%s %s %s: ", cmp.Or(legible.Printable(l.Place), fmt.Sprint(l.Number)), cmp.Or(legible.Printable(l.Consumer), "-"), id)
	if l.Happened == "" {
		line += "would be " + string(l.Prediction)
	} else {
		line += string(l.Happened)
	}
	if l.Changed() {
		line += fmt.Sprintf(" (foretold: %s)", l.Prediction)
	}
	if l.Why != "" {
		line += ": " + legible.Printable(l.Why)
	}
	return line
}

// fatesOf counts letters by a fate.
func fatesOf(letters []operate.Letter, of func(operate.Letter) operate.Fate) string {
	counts := map[operate.Fate]int{}
	for _, l := range letters {
		counts[of(l)]++
	}
	return countsOf(counts, letters, of)
}

// countsOf lists counts in the order of the fates, those that were refused with why.
func countsOf(counts map[operate.Fate]int, letters []operate.Letter, of func(operate.Letter) operate.Fate) string {
	var parts []string
	for _, fate := range operate.Fates() {
		if n := counts[fate]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, fate)+refusals(fate, letters, of))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

// refusals counts why letters are refused.
func refusals(fate operate.Fate, letters []operate.Letter, of func(operate.Letter) operate.Fate) string {
	if fate != operate.FateRefused || of == nil {
		return ""
	}
	whys := map[string]int{}
	for _, l := range letters {
		if of(l) == fate {
			why, _, _ := strings.Cut(l.Why, ";")
			whys[why]++
		}
	}
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(whys)) {
		parts = append(parts, fmt.Sprintf("%d because %s", whys[why], legible.Printable(why)))
	}
	return " (" + strings.Join(parts, "; ") + ")"
}
