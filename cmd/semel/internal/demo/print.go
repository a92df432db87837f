package demo

import (
	"embed"
	"fmt"
	"io"
)

//go:embed booking.go settle_first.go settle_last.go with_semel.go
var sources embed.FS

// WriteSource prints the source files of the three consumers.
func WriteSource(w io.Writer) error {
	for i, name := range []string{"booking.go", "settle_first.go", "settle_last.go", "with_semel.go"} {
		text, err := sources.ReadFile(name)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		if _, err := fmt.Fprintf(w, "// ==== %s ====\n\n%s", name, text); err != nil {
			return err
		}
	}
	return nil
}
