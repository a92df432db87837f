package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/spf13/cobra"
)

// listing is how a list is shown.
type listing struct {
	limit  int
	format string
}

// The formats of a list. The default is a table that fits the terminal.
const (
	formatTable = "table"
	formatWide  = "wide"
)

func (l *listing) add(c *common, cmd *cobra.Command, most int, what string) {
	cmd.Flags().IntVar(&l.limit, "limit", most, "show at most so many "+what+"; 0 for all")
	cmd.Flags().StringVarP(&l.format, "output", "o", formatTable, "table (fits the terminal), wide (all columns, whole) or json")
	complete(cmd, "output", []string{formatTable, formatWide, formatJSON})
}

// check reads the flags; json is the same as --json, and a document is whole
// unless somebody says otherwise.
func (l *listing) check(c *common, cmd *cobra.Command) error {
	c.json = c.json || l.format == formatJSON
	if c.json && !cmd.Flags().Changed("limit") {
		l.limit = 0
	}
	switch {
	case l.limit < 0:
		return usage("--limit %d: give a number of rows, or 0 for all", l.limit)
	case !slices.Contains([]string{formatTable, formatWide, formatJSON}, l.format):
		return usage("--output %q is no format; use table, wide or json", l.format)
	}
	return nil
}

// full reports whether another row is not shown.
func (l *listing) full(shown int) bool { return l.limit > 0 && shown >= l.limit }

// columns is the width that a table has to fit.
func (l *listing) columns(c *common) int {
	if !c.OutTerminal || l.format == formatWide {
		return terminal.Unlimited
	}
	return c.Width
}

// document is a list as JSON: its things under their name, and how many there are of all.
type document struct {
	name   string
	things any
	count  int
}

// MarshalJSON keeps the order: a map would sort its keys.
func (d document) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(d.things)
	return fmt.Appendf(nil, `{%q:%s,"count":%d}`, d.name, &b, d.count), err
}

// printList prints things as the flags want them, and on stderr how many there are of all.
func printList[T any](c *common, l *listing, name, thing string, shown []T, all int, columns func([]T, bool) []output.Column[T]) error {
	if c.json {
		return c.writeJSON(document{name, append([]T{}, shown...), all})
	}
	err := printTable(c, l, shown, columns)
	fmt.Fprintln(c.Err, counted(len(shown), all, thing))
	return err
}

// printTable prints things as a table that the flags want; columns is told whether its width
// has no limit.
func printTable[T any](c *common, l *listing, things []T, columns func(things []T, wide bool) []output.Column[T]) error {
	width := l.columns(c)
	return failed(output.Table(c.Out, things, columns(things, width == terminal.Unlimited), width))
}
