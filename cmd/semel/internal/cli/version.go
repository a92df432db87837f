package cli

import (
	"fmt"
	"io"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/spf13/cobra"
)

func versionCommand(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := command.ThisBuild()
			if c.JSON {
				return c.WriteJSON(b)
			}
			_, err := fmt.Fprintln(c.Out, b.Line())
			return command.Failed(err)
		},
	}
	c.OutputFlag(cmd)
	return cmd
}

func schemaCommand(c *command.CLI) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the policy file, for editors",
		Args:  command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := c.Out.Write(policy.JSONSchema())
			return command.Failed(err)
		},
	}
}

func alertsCommand(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "alerts",
		Short: "Print alert rules for Prometheus",
		Long: `Print the alert rules of deploy/alerts.yaml with the thresholds that consumers
set under alerts in the policy. The command reads only the policy.`,
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			p, err := c.Load()
			if err != nil {
				return err
			}
			var all []metrics.Thresholds
			for _, one := range p.Consumers {
				if a := one.Alerts; a.Any() {
					all = append(all, metrics.Thresholds{Consumer: one.Name, PendingAge: a.PendingAge, Parked: a.Parked, DuplicateSpike: a.DuplicateSpike})
				}
			}
			_, err = io.WriteString(c.Out, metrics.PolicyRules(all))
			return command.Failed(err)
		},
	}
	c.ConfigFlag(cmd)
	return cmd
}
