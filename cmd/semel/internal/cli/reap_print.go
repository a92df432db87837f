package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/spf13/cobra"
)

func reapPrint(c *common) *cobra.Command {
	f := &reapFlags{}
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print SQL of a reaper, for a scheduler of the database's own",
		Args:  nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, store, err := c.loadFor(f.store)
			if err != nil {
				return err
			}
			a, err := c.open(p, store, false)
			if err != nil {
				return err
			}
			defer c.close(a)
			printed := []reaperText{}
			for _, s := range a.Stores {
				names, err := c.reapedIn(cmd.Context(), p, s)
				if err != nil {
					return err
				}
				var text strings.Builder
				if err := s.PrintReaper(&text, names); err != nil {
					return failed(fmt.Errorf("store %s: %w", s.Name(), err))
				}
				printed = append(printed, reaperText{s.Name(), text.String()})
			}
			return c.printReapers(printed)
		},
	}
	return f.add(c, cmd)
}

// reapedIn are the consumers that a reaper of the store is called for, under the names of the
// generations in which they work: those of the policy, or, where a database is named without
// one, those that have recorded a retention there.
func (c *common) reapedIn(ctx context.Context, p *policy.Policy, s *assembly.Store) (names []string, err error) {
	chosen, _ := generationOf(c.consumer)
	for _, consumer := range p.Consumers {
		if consumer.Store != s.Name() || chosen != "" && chosen != consumer.Name {
			continue
		}
		name := cmp.Or(c.consumer, consumer.Name)
		if p.Generational(consumer) { // of others nothing is asked, so that no database is needed
			if name, _, err = inActiveOf(ctx, []*assembly.Store{s}, name); err != nil {
				return nil, err
			}
		}
		names = append(names, name)
	}
	switch {
	case len(p.Consumers) > 0:
		return names, nil
	case c.consumer != "":
		name, _, err := inActiveOf(ctx, []*assembly.Store{s}, c.consumer)
		return []string{name}, err
	}
	all, err := s.Retentions(ctx, "")
	if err != nil {
		return nil, failed(fmt.Errorf("store %s: its consumers are not known; name one with --consumer: %w", s.Name(), err))
	}
	for i := range all {
		if (all[i].Keep > 0 || all[i].Bodies > 0) && unworked(ctx, p, s, all[i].Consumer) == nil {
			names = append(names, all[i].Consumer)
		}
	}
	return names, nil
}

// reaperText is the SQL of a store's reaper.
type reaperText struct {
	Store string `json:"store"`
	SQL   string `json:"sql"`
}

func (c *common) printReapers(all []reaperText) error {
	if c.json {
		return c.writeJSON(struct {
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
