package terminal

import (
	"fmt"
	"io"
	"strings"
)

// Column is a column of a Table.
type Column struct {
	Title string
	// Flexible columns are cut if the table is too wide. Columns that are not flexible are never cut.
	Flexible bool
}

// Table prints rows below titles in aligned columns, within a maximum width.
type Table struct {
	Columns []Column
	rows    [][]string
}

// Add adds a row with one text per column. Control characters in texts are escaped.
func (t *Table) Add(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = Line(c)
	}
	t.rows = append(t.rows, row)
}

const (
	gap = "  "
	// narrowest is the minimum width of a flexible column, while other flexible columns can be cut.
	narrowest = 8
)

// Write prints the table with at most the given width. With Unlimited, nothing is cut.
func (t *Table) Write(w io.Writer, columns int) error {
	titles := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		titles[i] = c.Title
	}
	lines := append([][]string{titles}, t.rows...)
	widths := t.widths(lines, columns)
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, alignCells(line, widths, columns)); err != nil {
			return err
		}
	}
	return nil
}

// widths returns the width of each column. While the table is too wide, widths cuts the widest flexible
// column.
func (t *Table) widths(lines [][]string, columns int) []int {
	widths := make([]int, len(t.Columns))
	total := len(gap) * (len(widths) - 1)
	for i := range widths {
		for _, line := range lines {
			widths[i] = max(widths[i], Columns(line[i]))
		}
		total += widths[i]
	}
	for ; columns != Unlimited && total > columns; total-- {
		widest := -1
		for i, c := range t.Columns {
			if c.Flexible && widths[i] > narrowest && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

func alignCells(line []string, widths []int, columns int) string {
	var b strings.Builder
	for i, cell := range line {
		if Columns(cell) > widths[i] {
			cell = Cut(cell, widths[i])
		}
		b.WriteString(cell)
		b.WriteString(strings.Repeat(" ", widths[i]-Columns(cell)))
		b.WriteString(gap)
	}
	return Cut(strings.TrimRight(b.String(), " "), columns)
}
