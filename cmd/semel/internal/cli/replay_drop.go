package cli

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/cmd/semel/internal/rebuild"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

func replayDrop(c *common) *cobra.Command {
	w := &switching{}
	cmd := &cobra.Command{
		Use:   "drop NUMBER --consumer NAME --because TEXT",
		Short: "Remove what is kept of an old or an unwanted generation",
		Long: `Drop removes, some at a time, the markers and rows of the generation that was
active before this rebuild was switched to, or, if it was not, of the rebuild's
own, which ends it. The rows of your own tables are yours to delete.
Interrupted, it goes on with the next call.`,
		Args: oneReplay,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.ofRebuild(cmd.Context(), args[0], w, c.drop)
		},
	}
	cmd.Flags().BoolVar(&w.dry, "dry-run", false, "only say which generation would be removed")
	recordFlags(cmd, &w.who, &w.why)
	refuseEmpty(cmd, "consumer")
	return c.withConfig(c.withConsumer(cmd, "whose generation is removed"))
}

// dropped is what a drop says.
type dropped struct {
	Number     int64  `json:"number"`
	Consumer   string `json:"consumer"`
	Generation int64  `json:"generation"`
	Removed    int    `json:"removed"`
	DryRun     bool   `json:"dry_run"`
}

func (c *common) drop(ctx context.Context, of *rebuiltOf, w *switching) error {
	name := of.consumer.Name
	all, err := of.store.Generations(ctx, name)
	if err != nil {
		return failed(err)
	}
	number, err := rebuild.Dropped(all, of.replay.Generation)
	if err != nil {
		return failed(err)
	}
	d := dropped{Number: of.replay.Number, Consumer: name, Generation: number, DryRun: w.dry}
	if !w.dry {
		if d.Removed, err = rebuild.Drop(ctx, of.store, name, number, store.Act{Verb: "rebuild drop", Who: w.who, Why: w.why}); err != nil {
			return failed(err)
		}
	}
	if c.json {
		return writeJSON(c.Out, d)
	}
	if w.dry {
		_, err = fmt.Fprintf(c.Out, "would remove what is kept of generation %d of %s\n", number, name)
		return failed(err)
	}
	_, err = fmt.Fprintf(c.Out, "removed %d records of generation %d of %s; the rows of your tables are yours:\n  delete from … where generation = %d\n", d.Removed, number, name, number)
	return failed(err)
}
