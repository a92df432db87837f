package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/semel-go/semel/cmd/semel/internal/metrics"
)

func alertsCommand(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "alerts",
		Short: "Print rules for Prometheus, with what the policy says of alerts",
		Long: `Alerts prints alert rules for Prometheus over the metrics of semel run: those
that ship as deploy/alerts.yaml, with what consumers of the policy say under
alerts in the place of their thresholds. Nothing is asked and nothing changed.`,
		Args: nothing,
		RunE: func(*cobra.Command, []string) error {
			p, err := c.load()
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
			return failed(err)
		},
	}
	cmd.Flags().StringVar(&c.config, "config", "semel.yaml", "the policy file")
	return cmd
}
