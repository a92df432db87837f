package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/spf13/cobra"
)

// build is the information that the Go toolchain has stored in the binary.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	System   string `json:"system"`
}

func versionCommand(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if c.JSON {
				return c.WriteJSON(b)
			}
			_, err := fmt.Fprintln(c.Out, b.line())
			return command.Failed(err)
		},
	}
	cmd.Flags().BoolVar(&c.JSON, "json", false, "print one JSON document")
	return cmd
}

func (b build) line() string {
	return fmt.Sprintf("semel %s %s %s %s", b.Version, b.Revision, b.Go, b.System)
}

func thisBuild() build {
	b := build{Version: "(devel)", Revision: "unknown", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
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
