package cli

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/spf13/cobra"
)

// mostHelpLines are the lines of a usual terminal.
const mostHelpLines = 24

func TestTheHelpOfMessagesFitsATerminal(t *testing.T) {
	walk(newRoot(&command.CLI{}), func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		if len(path) == 0 || !strings.Contains(" messages intents gaps erase ", " "+path[0]+" ") {
			return
		}
		if _, out, _ := invoke(append([]string{"help"}, path...)...); strings.Count(out, "\n") > mostHelpLines {
			t.Errorf("semel help %s has %d lines:\n%s", strings.Join(path, " "), strings.Count(out, "\n"), out)
		}
	})
}
