// Package ledger is what the proofs share when they add up: the effect log, and
// the table of what came out.
package ledger

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Line is one line of a table: a name and a value.
type Line [2]any

// WriteTable prints lines with their names to the left.
func WriteTable(w io.Writer, lines []Line) error {
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.AlignRight)
	for _, l := range lines {
		fmt.Fprintf(table, "%v\t  %v\t\n", l[0], l[1])
	}
	return table.Flush()
}
