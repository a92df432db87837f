package cli

import (
	"github.com/spf13/cobra"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

func schemaCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the policy file, for editors",
		Args:  nothing,
		RunE: func(*cobra.Command, []string) error {
			_, err := c.Out.Write(policy.JSONSchema())
			return failed(err)
		},
	}
}
