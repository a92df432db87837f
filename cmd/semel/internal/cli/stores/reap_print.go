package stores

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/spf13/cobra"
)

func retentionPrint(c *command.CLI) *cobra.Command {
	f := &reapFlags{}
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the reaper as SQL for the database's scheduler",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, store, err := c.LoadFor(f.store)
			if err != nil {
				return err
			}
			a, err := c.Open(p, store, false)
			if err != nil {
				return err
			}
			defer c.Close(a)
			printed := []reaperText{}
			for _, s := range a.Stores {
				names, err := reapedIn(cmd.Context(), c, p, s)
				if err != nil {
					return err
				}
				var text strings.Builder
				if err := s.PrintReaper(&text, names); err != nil {
					return command.Failed(fmt.Errorf("store %s: %w", s.Name(), err))
				}
				printed = append(printed, reaperText{s.Name(), text.String()})
			}
			return printReapers(c, printed)
		},
	}
	return f.add(c, cmd)
}

// reapedIn returns the stored names of the consumers for which the printed reaper runs. The returned names
// contain the active generations. The names are those of the policy's consumers or, without a policy, of the
// consumers with a recorded retention in the store.
func reapedIn(ctx context.Context, c *command.CLI, p *policy.Policy, s *assembly.Store) (names []string, err error) {
	chosen, _ := command.GenerationOf(c.Consumer)
	for _, consumer := range p.Consumers {
		if consumer.Store != s.Name() || chosen != "" && chosen != consumer.Name {
			continue
		}
		name := cmp.Or(c.Consumer, consumer.Name)
		if p.Generational(consumer) { // read the active generation only if the consumer has generations, so that other consumers need no database
			if name, _, err = command.ActiveNameOf(ctx, []*assembly.Store{s}, name); err != nil {
				return nil, err
			}
		}
		names = append(names, name)
	}
	switch {
	case len(p.Consumers) > 0:
		return names, nil
	case c.Consumer != "":
		name, _, err := command.ActiveNameOf(ctx, []*assembly.Store{s}, c.Consumer)
		return []string{name}, err
	}
	all, err := s.Retentions(ctx, "")
	if err != nil {
		return nil, command.Failed(fmt.Errorf("store %s: its consumers are not known; name one with --consumer: %w", s.Name(), err))
	}
	for i := range all {
		if (all[i].Keep > 0 || all[i].Bodies > 0) && command.Unworked(ctx, p, s, all[i].Consumer) == nil {
			names = append(names, all[i].Consumer)
		}
	}
	return names, nil
}

// reaperText has the SQL of a store's reaper, which removes old markers.
type reaperText struct {
	Store string `json:"store"`
	SQL   string `json:"sql"`
}

func printReapers(c *command.CLI, all []reaperText) error {
	if c.JSON {
		return c.WriteJSON(struct {
			Stores []reaperText `json:"stores"`
		}{all})
	}
	for _, one := range all {
		if _, err := io.WriteString(c.Out, one.SQL); err != nil {
			return err
		}
	}
	return nil
}
