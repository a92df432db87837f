package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

// grantsView are the GRANT statements of a store as they are shown.
type grantsView struct {
	Store  string   `json:"store"`
	Grants []string `json:"grants"`
}

func migrateGrants(c *common) *cobra.Command {
	var role, store string
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "Print the GRANTs that a role of PostgreSQL needs",
		Long: `Grants prints the GRANT statements for the role of semel run and of the
commands for operators: in Semel's tables, in the tables of days of consumers,
and in tables that consumers have adopted. What the statements of your handlers
need in your own tables is not among them. Run them as the owner of the tables,
after semel migrate up.`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, store, err := c.loadFor(store)
			if err != nil {
				return err
			}
			views, file := []grantsView{}, ""
			for _, s := range p.Databases() {
				if store != "" && s.Name != store {
					continue
				}
				if s.Postgres == nil {
					file = s.Name
					continue
				}
				view, err := c.grants(cmd.Context(), p, s.Name, role)
				if err != nil {
					return err
				}
				views = append(views, view)
			}
			if len(views) == 0 && file != "" {
				return usage("store %s is a file of SQLite, which has no roles: whoever may write the file may do everything", file)
			}
			if len(views) == 0 {
				_, err := c.open(p, store, false) // which says that the store is Redis, or that there is none
				return err
			}
			return c.printGrants(views)
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "the role (default: that of the store's connection)")
	storeFlag(cmd, &store)
	refuseEmpty(cmd, "role", "store")
	return c.withConfig(cmd)
}

func (c *common) grants(ctx context.Context, p *policy.Policy, store, role string) (grantsView, error) {
	a, err := c.open(p, store, false)
	if err != nil {
		return grantsView{}, err
	}
	defer c.close(a)
	s := a.Stores[0]
	grants, err := s.Grants(ctx, role, adoptedTables(p, store)...)
	return grantsView{store, grants}, checked(s.Failed(err))
}

// adoptedTables are those that consumers of the store have adopted.
func adoptedTables(p *policy.Policy, store string) (tables []string) {
	for _, consumer := range p.Consumers {
		if consumer.Store == store && consumer.Dedup != nil && !slices.Contains(tables, consumer.Dedup.Table) {
			tables = append(tables, consumer.Dedup.Table)
		}
	}
	return tables
}

func (c *common) printGrants(views []grantsView) error {
	if c.json {
		return writeJSON(c.Out, map[string]any{"stores": views})
	}
	for _, v := range views {
		fmt.Fprintf(c.Out, "-- store %s\n", v.Store)
		for _, grant := range v.Grants {
			fmt.Fprintf(c.Out, "%s;\n", grant)
		}
	}
	return nil
}
