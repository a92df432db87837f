package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/semel-go/semel/cmd/semel/internal/cli/output"
	"github.com/semel-go/semel/cmd/semel/internal/terminal"
	"github.com/spf13/cobra"
)

// Listing has the flags of commands that print lists.
type Listing struct {
	Limit  int
	format string
}

// The output formats of a list. The default format is a table that fits the terminal.
const (
	formatTable = "table"
	formatWide  = "wide"
)

// Add adds the flags --limit and --output. The parameter most is the default limit. The parameter what names
// the listed things in the help text.
func (l *Listing) Add(c *CLI, cmd *cobra.Command, most int, what string) {
	cmd.Flags().IntVar(&l.Limit, "limit", most, "at most so many "+what+"; 0: all")
	cmd.Flags().StringVarP(&l.format, "output", "o", formatTable, "table, wide or json")
	CompleteFlag(cmd, "output", []string{formatTable, formatWide, formatJSON})
}

// Check checks the flags. With --output json, Check sets c.JSON. A list in JSON has no limit, unless --limit
// is given.
func (l *Listing) Check(c *CLI, cmd *cobra.Command) error {
	c.JSON = c.JSON || l.format == formatJSON
	if c.JSON && !cmd.Flags().Changed("limit") {
		l.Limit = 0
	}
	switch {
	case l.Limit < 0:
		return UsageError("--limit %d: give a number of rows, or 0 for all", l.Limit)
	case !slices.Contains([]string{formatTable, formatWide, formatJSON}, l.format):
		return UsageError("--output %q is no format; use table, wide or json", l.format)
	}
	return nil
}

// Full reports whether the number of rows in shown is at or above Limit.
func (l *Listing) Full(shown int) bool { return l.Limit > 0 && shown >= l.Limit }

// Columns returns the maximum width of a table.
func (l *Listing) Columns(c *CLI) int {
	if !c.OutTerminal || l.format == formatWide {
		return terminal.Unlimited
	}
	return c.Width
}

// document is a list in JSON. The field name is the JSON key of the list. The field count is the number of
// all things, including those beyond the limit.
type document struct {
	name   string
	things any
	count  int
}

// MarshalJSON writes the list before the count. encoding/json would sort the keys of a map.
func (d document) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(d.things)
	return fmt.Appendf(nil, `{%q:%s,"count":%d}`, d.name, &b, d.count), err
}

// PrintList prints the things as a table, and the number of all things to standard error. With -o json,
// PrintList prints a JSON document instead of a table.
func PrintList[T any](c *CLI, l *Listing, name, thing string, shown []T, all int, columns func([]T, bool) []output.Column[T]) error {
	if c.JSON {
		return c.WriteJSON(document{name, append([]T{}, shown...), all})
	}
	if err := PrintTable(c, l, shown, columns); err != nil {
		return err
	}
	fmt.Fprintln(c.Err, output.Counted(len(shown), all, thing))
	return nil
}

// PrintTable prints things as a table. PrintTable calls the function columns with the argument true if the
// width is unlimited.
func PrintTable[T any](c *CLI, l *Listing, things []T, columns func(things []T, wide bool) []output.Column[T]) error {
	width := l.Columns(c)
	return Failed(output.Table(c.Out, things, columns(things, width == terminal.Unlimited), width))
}
