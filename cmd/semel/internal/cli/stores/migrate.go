// Package stores has the commands that maintain a store: schema, retention, identities and audit trail.
package stores

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"text/tabwriter"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/legible"
	"github.com/spf13/cobra"
)

// Commands returns the commands of this package.
func Commands(c *command.CLI) []*cobra.Command {
	return []*cobra.Command{migrateCommand(c), retentionCommand(c), auditCommand(c)}
}

func migrateCommand(c *command.CLI) *cobra.Command {
	return command.Group("migrate", "Create and upgrade Semel's tables", migrateUp(c), migrateStatus(c), migratePrint(c), migrateGrants(c), migrateSeed(c))
}

func migrateUp(c *command.CLI) *cobra.Command {
	var who, why string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Apply missing migrations and each store's setup",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if who, err = command.OperatorName(who); err != nil {
				return err
			}
			p, err := c.Load()
			if err != nil {
				return err
			}
			a, err := c.Open(p, "", true)
			if err != nil {
				return err
			}
			defer c.Close(a)
			changes := []assembly.Change{}
			for _, s := range a.Stores {
				change, err := s.Up(cmd.Context(), who, why, []byte(p.Audit.Key))
				if err != nil {
					return withExitCode(err)
				}
				changes = append(changes, change)
			}
			if err := a.Check(cmd.Context()); err != nil {
				return errors.Join(printChanges(c, changes), withExitCode(err))
			}
			a.WarnOfRoles(cmd.Context(), &sync.Map{})
			return printChanges(c, changes)
		},
	}
	command.RecordFlags(cmd, &who, &why)
	return c.WithConfig(cmd)
}

func printChanges(c *command.CLI, changes []assembly.Change) error {
	if c.JSON {
		return c.WriteJSON(map[string]any{"stores": changes})
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

type migrationView struct {
	Store   string `json:"store"`
	Version int    `json:"version"`
	Name    string `json:"name"`
	Applied bool   `json:"applied"`
	// At is the time of the migration; empty if the migration was not applied.
	At string `json:"at,omitempty"`
	// Newer means that only a newer release knows the migration.
	Newer bool `json:"newer,omitempty"`
}

func migrateStatus(c *command.CLI) *cobra.Command {
	return c.WithConfig(&cobra.Command{
		Use:   "status",
		Short: "Show applied and missing migrations",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := c.Load()
			if err != nil {
				return err
			}
			views := []migrationView{}
			var found error
			for _, s := range p.Databases() {
				all, err := assembly.Status(cmd.Context(), s)
				if err != nil && !errors.Is(err, semel.ErrSchema) {
					return command.Failed(err)
				}
				found = errors.Join(found, err)
				for _, m := range all {
					view := migrationView{Store: s.Name, Version: m.Version, Name: m.Name, Applied: !m.AppliedAt.IsZero(), Newer: m.SQL == ""}
					if view.Applied {
						view.At = output.Moment(m.AppliedAt)
					}
					views = append(views, view)
				}
			}
			return errors.Join(printStatus(c, views), withExitCode(found))
		},
	})
}

func printStatus(c *command.CLI, views []migrationView) error {
	if c.JSON {
		return c.WriteJSON(map[string]any{"migrations": views})
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
	return command.Failed(table.Flush())
}

func migratePrint(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the SQL of all migrations",
		Args:  command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			p, err := c.Load()
			if err != nil {
				return err
			}
			for _, s := range p.Databases() {
				fmt.Fprintf(c.Out, "-- store %s\n", s.Name)
				if err := assembly.Print(c.Out, s); err != nil {
					return command.Failed(err)
				}
			}
			return nil
		},
	}
	c.ConfigFlag(cmd)
	return cmd
}

// grantsView shows the GRANT statements of a store.
type grantsView struct {
	Store  string   `json:"store"`
	Grants []string `json:"grants"`
}

func migrateGrants(c *command.CLI) *cobra.Command {
	var role, store string
	cmd := &cobra.Command{
		Use:   "grants",
		Short: "Print the GRANTs for a role",
		Long: `Print the GRANT statements for the role of semel run and of the commands for
operators. Run them as the owner of the tables, after semel migrate up.

The statements are for Semel's tables, daily partitions, and adopted tables.
Privileges for your own tables are not included.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, store, err := c.LoadFor(store)
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
				view, err := grants(cmd.Context(), c, p, s.Name, role)
				if err != nil {
					return err
				}
				views = append(views, view)
			}
			if len(views) == 0 && file != "" {
				return command.UsageError("store %s is a file of SQLite, which has no roles: whoever may write the file may do everything", file)
			}
			if len(views) == 0 {
				_, err := c.Open(p, store, false) // Open returns an error if the store does not exist or is a Redis store
				return err
			}
			return printGrants(c, views)
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "the role (default: the role of the connection)")
	command.StoreFlag(cmd, &store)
	command.RefuseEmpty(cmd, "role", "store")
	return c.WithConfig(cmd)
}

func grants(ctx context.Context, c *command.CLI, p *policy.Policy, store, role string) (grantsView, error) {
	a, err := c.Open(p, store, false)
	if err != nil {
		return grantsView{}, err
	}
	defer c.Close(a)
	s := a.Stores[0]
	grants, err := s.Grants(ctx, role, adoptedTables(p, store)...)
	return grantsView{store, grants}, withExitCode(s.Failed(err))
}

// adoptedTables returns the users' deduplication tables that consumers of the store use.
func adoptedTables(p *policy.Policy, store string) (tables []string) {
	for _, consumer := range p.Consumers {
		if consumer.Store == store && consumer.Dedup != nil && !slices.Contains(tables, consumer.Dedup.Table) {
			tables = append(tables, consumer.Dedup.Table)
		}
	}
	return tables
}

func printGrants(c *command.CLI, views []grantsView) error {
	if c.JSON {
		return c.WriteJSON(map[string]any{"stores": views})
	}
	for _, v := range views {
		fmt.Fprintf(c.Out, "-- store %s\n", v.Store)
		for _, grant := range v.Grants {
			fmt.Fprintf(c.Out, "%s;\n", grant)
		}
	}
	return nil
}

// withExitCode returns the error of a schema check with an exit code: 4 if tables do not fit this
// release, because the command looks for such tables, and 1 for other errors.
func withExitCode(err error) error {
	if errors.Is(err, semel.ErrSchema) {
		return command.Found(err)
	}
	return command.Failed(err)
}
