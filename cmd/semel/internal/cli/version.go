package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/semel-go/semel/cmd/semel/internal/terminal"
)

// build is what the binary knows of itself.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	System   string `json:"system"`
}

func versionCommand(c *common) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  nothing,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if c.json {
				return writeJSON(c.Out, b)
			}
			_, err := fmt.Fprintln(c.Out, b.line())
			return failed(err)
		},
	}
	cmd.Flags().BoolVar(&c.json, "json", false, "print one JSON document")
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

// writeJSON prints one document.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(terminal.JSON(w))
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return failed(e.Encode(v))
}
