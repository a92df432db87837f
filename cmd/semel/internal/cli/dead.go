package cli

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// aside are the states of a message that failed for good.
func aside() []store.RowState {
	return []store.RowState{store.StateParked, store.StateDeadLettered}
}

func deadCommand(c *common) *cobra.Command {
	return group("dead", "List, show, edit, replay and discard what failed for good",
		deadList(c), deadShow(c), deadEdit(c), deadReplay(c), deadDiscard(c))
}

// addGroup adds the flag for a failure group.
func (f *filter) addGroup(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.group, "group", "", "only letters of this failure group, as ls names it")
}

func deadDiscard(c *common) *cobra.Command {
	f := &filter{}
	cmd := rowActOf(c, f, admin.Discard, aside()...)
	f.addGroup(cmd)
	return cmd
}

func deadList(c *common) *cobra.Command {
	f, l := &filter{}, &listing{}
	var letters bool
	var topic string
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List failure groups, or with filters the letters of them",
		Long: `List what failed for good: what was parked or dead-lettered, and is not done.

Without filters it counts failure groups: letters of one consumer and reason
whose errors begin alike. With --group, another filter or --letters it lists
the letters themselves. With --topic it lists the letters of a topic, each with
how it stands in the store: set aside, waiting, applied, discarded, conflict,
unknown here, no identity, foreign (of another consumer, or of none), or cut.`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if topic != "" {
				if err := l.check(c, cmd); err != nil {
					return err
				}
				return c.listTopic(cmd.Context(), topic, f, l)
			}
			return c.look(cmd, f, l, func(ctx context.Context, a *assembly.Assembly, chosen store.RowFilter, l *listing) error {
				if letters || f.single(cmd) {
					return c.listLetters(ctx, a, chosen, f.group, l)
				}
				_, err := c.summarizeBy(ctx, a, chosen, l, "letter", operate.Box.Failures)
				return err
			})
		},
	}
	l.add(c, cmd, 0, "lines")
	cmd.Flags().BoolVar(&letters, "letters", false, "list the letters, and not the groups")
	f.addGroup(cmd)
	topicFlag(cmd, &topic)
	return c.withConfig(f.add(c, cmd, aside()...))
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
func (c *common) listLetters(ctx context.Context, a *assembly.Assembly, f store.RowFilter, group string, l *listing) error {
	var err error
	if f.Consumer, err = c.inActive(ctx, a, f.Consumer); err != nil {
		return err
	}
	views, count := []operate.View{}, 0
	for _, s := range a.Stores {
		box := boxOf(s)
		for row, err := range box.Rows(ctx, f) {
			if err != nil {
				return failed(err)
			}
			if group != "" && operate.Failure(row) != group {
				continue
			}
			if count++; !l.full(len(views)) {
				views = append(views, operate.NewView(box.Store, row))
			}
		}
	}
	if c.json {
		return writeJSON(c.Out, map[string]any{"letters": views, "count": count})
	}
	columns := l.columns(c)
	if err := show(c.Out, views, rowColumns(views, columns == terminal.Unlimited), columns); err != nil {
		return failed(err)
	}
	fmt.Fprintln(c.Err, counted(len(views), count, "letter"))
	if count == 0 {
		return c.pointAtReasons(ctx, a, f)
	}
	return nil
}
