package stores

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	"github.com/spf13/cobra"
)

// seedFlags has the flags of `semel migrate seed`.
type seedFlags struct {
	from, column, where, source string
	sourceGiven                 bool
	who, why                    string
}

func migrateSeed(c *command.CLI) *cobra.Command {
	var f seedFlags
	cmd := &cobra.Command{
		Use:   "seed NAME --from TABLE --id COLUMN",
		Short: "Import ids of another table as markers",
		Long: `Write a marker for each id in a table of other code, so that the consumer does
not process these messages again. Stop the other code first, then seed, then
start the consumer: a message that is consumed before its id is seeded takes
effect again.

Ids are compared byte for byte with the consumer's identities; ids of a uuid
column are written in lower case. Existing markers are not changed. Repeat the
command to continue after an interruption.`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if f.who, err = command.OperatorName(f.who); err != nil {
				return err
			}
			f.sourceGiven = cmd.Flags().Changed("source")
			return seed(cmd.Context(), c, f)
		},
	}
	cmd.Flags().StringVar(&f.from, "from", "", "the table, with its schema if necessary")
	cmd.Flags().StringVar(&f.column, "id", "", "its column of ids")
	cmd.Flags().StringVar(&f.where, "where", "", "an SQL condition that selects rows")
	cmd.Flags().StringVar(&f.source, "source", "", "their source, if the identity has one")
	command.RecordFlags(cmd, &f.who, &f.why)
	for _, name := range []string{"from", "id"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
	return c.WithConfig(c.ForConsumer(cmd))
}

func seed(ctx context.Context, c *command.CLI, f seedFlags) error {
	p, err := c.Load()
	if err != nil {
		return err
	}
	consumer := p.Consumer(c.Consumer)
	if consumer == nil {
		return c.NoConsumer(p, c.Consumer)
	}
	if err := f.checkSource(consumer); err != nil {
		return err
	}
	a, err := c.OpenChecked(ctx, p, consumer.Store)
	if err != nil {
		return err
	}
	defer c.Close(a)
	what := fmt.Sprintf("consumer %s, ids of %s", consumer.Name, f.from)
	if err := a.RecordOf(ctx, consumer, store.Act{Verb: "seed", Who: f.who, Why: command.Because(what, f.why)}); err != nil {
		return command.Failed(err)
	}
	sum, err := a.Stores[0].Seed(ctx, sqlstore.Seed{
		Consumer: consumer.Name, Source: f.source, Table: f.from, ID: f.column, Where: f.where, Progress: reportSeeded(c, f.from),
	})
	if err != nil {
		return command.Failed(err)
	}
	return printSeeded(c, consumer.Name, f.from, sum)
}

// checkSource returns an error if the source in the flags is not the source of the consumer's identities.
// The consumer would never find markers with another source.
func (f *seedFlags) checkSource(c *policy.Consumer) error {
	if !c.Strategy.Marks() {
		return command.UsageError("consumer %s: its strategy keeps no markers", c.Name)
	}
	source, constant := c.Identity.ConstantSource()
	switch {
	case !constant && !f.sourceGiven:
		return command.UsageError("consumer %s finds the source of a message at %s; say with --source which of them these ids are of", c.Name, c.Identity.Source)
	case !constant:
		return nil
	case f.sourceGiven && f.source != source && source == "":
		return command.UsageError("--source %q: the identity of consumer %s has no source; leave the flag out", f.source, c.Name)
	case f.sourceGiven && f.source != source:
		return command.UsageError("--source %q: the identity of consumer %s has the source %q", f.source, c.Name, source)
	}
	f.source = source
	return nil
}

// seededEvery is the number of ids after which progress is printed.
const seededEvery = 100_000

func reportSeeded(c *command.CLI, table string) func(sqlstore.Seeded) {
	table = terminal.Line(table)
	next := int64(0)
	return func(sum sqlstore.Seeded) {
		if sum.Resumed && next == 0 {
			fmt.Fprintf(c.Err, "semel: going on with %s where an earlier seeding stopped\n", table)
		}
		if next == 0 {
			next = sum.Read + seededEvery
		}
		if sum.Read >= next {
			next += seededEvery
			fmt.Fprintf(c.Err, "semel: %d ids of %s read, %d markers written\n", sum.Read, table, sum.Written)
		}
	}
}

func printSeeded(c *command.CLI, consumer, table string, sum sqlstore.Seeded) error {
	if c.JSON {
		return c.WriteJSON(map[string]any{"consumer": consumer, "table": table,
			"read": sum.Read, "written": sum.Written, "unusable": sum.Unusable, "resumed": sum.Resumed})
	}
	_, err := fmt.Fprintf(c.Out, "consumer %s: %d ids of %s read, %d markers written\n", terminal.Line(consumer), sum.Read, terminal.Line(table), sum.Written)
	if err == nil && sum.Unusable > 0 {
		_, err = fmt.Fprintf(c.Out, "%d of the ids are empty or too long to be a message's\n", sum.Unusable)
	}
	return command.Failed(err)
}
