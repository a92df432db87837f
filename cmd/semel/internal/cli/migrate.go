package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"text/tabwriter"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/legible"
	"github.com/spf13/cobra"
)

func migrateCommand(c *common) *cobra.Command {
	return group("migrate", "Create and upgrade semel's tables", migrateUp(c), migrateStatus(c), migratePrint(c), migrateGrants(c), migrateSeed(c))
}

func migrateUp(c *common) *cobra.Command {
	var who, why string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Apply what is missing, and each store's setup once",
		Args:  nothing,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if who, err = operator(who); err != nil {
				return err
			}
			p, err := c.load()
			if err != nil {
				return err
			}
			a, err := c.open(p, "", true)
			if err != nil {
				return err
			}
			defer c.close(a)
			changes := []assembly.Change{}
			for _, s := range a.Stores {
				change, err := s.Up(cmd.Context(), who, why, []byte(p.Audit.Key))
				if err != nil {
					return checked(err)
				}
				changes = append(changes, change)
			}
			if err := a.Check(cmd.Context()); err != nil {
				return errors.Join(c.printChanges(changes), checked(err))
			}
			a.WarnOfRoles(cmd.Context(), &sync.Map{})
			return c.printChanges(changes)
		},
	}
	recordFlags(cmd, &who, &why)
	return c.withConfig(cmd)
}

func (c *common) printChanges(changes []assembly.Change) error {
	if c.json {
		return c.writeJSON(map[string]any{"stores": changes})
	}
	for _, change := range changes {
		for _, name := range change.Applied {
			fmt.Fprintf(c.Out, "store %s: applied %s\n", change.Store, name)
		}
		if change.Setup != "" {
			fmt.Fprintf(c.Out, "store %s: ran %s\n", change.Store, change.Setup)
		}
		if len(change.Applied) == 0 && change.Setup == "" {
			fmt.Fprintf(c.Out, "store %s: nothing to do\n", change.Store)
		}
	}
	return nil
}

// migrationView is a migration of a store as it is shown.
type migrationView struct {
	Store   string `json:"store"`
	Version int    `json:"version"`
	Name    string `json:"name"`
	Applied bool   `json:"applied"`
	// At is empty if it is not applied.
	At string `json:"at,omitempty"`
	// Newer: only a newer release knows it.
	Newer bool `json:"newer,omitempty"`
}

func migrateStatus(c *common) *cobra.Command {
	return c.withConfig(&cobra.Command{
		Use:   "status",
		Short: "Show which migrations are applied and which are missing",
		Args:  nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := c.load()
			if err != nil {
				return err
			}
			views := []migrationView{}
			var found error
			for _, s := range p.Databases() {
				all, err := assembly.Status(cmd.Context(), s)
				if err != nil && !errors.Is(err, semel.ErrSchema) {
					return failed(err)
				}
				found = errors.Join(found, err)
				for _, m := range all {
					view := migrationView{Store: s.Name, Version: m.Version, Name: m.Name, Applied: !m.AppliedAt.IsZero(), Newer: m.SQL == ""}
					if view.Applied {
						view.At = moment(m.AppliedAt)
					}
					views = append(views, view)
				}
			}
			return errors.Join(c.printStatus(views), checked(found))
		},
	})
}

func (c *common) printStatus(views []migrationView) error {
	if c.json {
		return c.writeJSON(map[string]any{"migrations": views})
	}
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STORE\tVERSION\tNAME\tAPPLIED")
	for _, v := range views {
		at := v.At
		if !v.Applied {
			at = "missing"
		}
		if v.Newer {
			at += ", by a newer release"
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", v.Store, v.Version, legible.Printable(v.Name), at)
	}
	return failed(table.Flush())
}

func migratePrint(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the SQL of all migrations, for a tool of your own",
		Args:  nothing,
		RunE: func(*cobra.Command, []string) error {
			p, err := c.load()
			if err != nil {
				return err
			}
			for _, s := range p.Databases() {
				fmt.Fprintf(c.Out, "-- store %s\n", s.Name)
				if err := assembly.Print(c.Out, s); err != nil {
					return failed(err)
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&c.config, "config", "semel.yaml", "the policy file")
	return cmd
}

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
		return c.writeJSON(map[string]any{"stores": views})
	}
	for _, v := range views {
		fmt.Fprintf(c.Out, "-- store %s\n", v.Store)
		for _, grant := range v.Grants {
			fmt.Fprintf(c.Out, "%s;\n", grant)
		}
	}
	return nil
}

// checked is failed, but for tables that do not fit: finding those is what the
// command is for, and exits with 4.
func checked(err error) error {
	if errors.Is(err, semel.ErrSchema) {
		return found(err)
	}
	return failed(err)
}
