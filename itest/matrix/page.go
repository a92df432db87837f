package matrix

import (
	"fmt"
	"slices"
	"strings"
)

const introduction = `# The crash matrix

This page is for reviewers and contributors. ` + "`go test ./itest/matrix -run Page -update`" + ` writes it, and a test compares it.

A consumer processes four messages of two partitions and two keys. One fault disturbs it: at a point that a message passes (package ` + "`faults`" + `), of one kind, with one strategy, lane mode and store. Then other consumers finish the work, and at the end all messages are delivered a second time. Each combination is a *cell*. Faults within one process on memory and SQLite, and SIGKILL on SQLite, meet every lane mode; the other combinations meet one lane mode each, in turn. In a cell that runs, no message may be

* **lost**: acked without an effect;
* **doubled**: with two effects, with two idempotency keys at the other system, or with more calls than one fault can cause;
* **stuck**: not acked, or still waiting in the inbox.

A cell that cannot run has a reason of a closed list. ` + "`make test`" + ` runs a part of the cells, ` + "`make matrix`" + ` runs all.
`

// page returns the text of the documentation page about the matrix.
func page() string {
	all := cells()
	var out strings.Builder
	out.WriteString(introduction)
	out.WriteString("\n## By store and strategy\n\nThe first number counts the cells that run, the second the impossible cells.\n\n")
	table(&out, all, "strategy", func(c cell) string { return string(c.Strategy) })
	out.WriteString("\n## By store and kind of fault\n\n")
	table(&out, all, "fault", func(c cell) string { return string(c.Kind) })
	out.WriteString("\n## By store and point\n\n")
	table(&out, all, "point", func(c cell) string { return string(c.Point) })
	out.WriteString("\n## Why cells are impossible\n\n| cells | reason |\n|---|---|\n")
	counts := map[reason]int{}
	for _, c := range all {
		counts[c.impossible()]++
	}
	for r := possible + 1; r < reasons; r++ {
		fmt.Fprintf(&out, "| %d | %s |\n", counts[r], r)
	}
	return out.String()
}

// table writes a table with a line for each value of a dimension and a column for each store.
func table(out *strings.Builder, all []cell, name string, of func(cell) string) {
	type place struct {
		value string
		base  base
	}
	values, runs, cannot := []string{}, map[place]int{}, map[place]int{}
	for _, c := range all {
		if !slices.Contains(values, of(c)) {
			values = append(values, of(c))
		}
		count := runs
		if c.impossible() != possible {
			count = cannot
		}
		for _, at := range []place{{of(c), c.Base}, {of(c), "all"}, {"all", c.Base}, {"all", "all"}} {
			count[at]++
		}
	}
	fmt.Fprintf(out, "| %s |", name)
	columns := append(bases(), "all")
	for _, b := range columns {
		fmt.Fprintf(out, " %s |", b)
	}
	fmt.Fprintf(out, "\n|---|%s\n", strings.Repeat("---|", len(columns)))
	for _, v := range append(values, "all") {
		fmt.Fprintf(out, "| %s |", v)
		for _, b := range columns {
			fmt.Fprintf(out, " %d / %d |", runs[place{v, b}], cannot[place{v, b}])
		}
		out.WriteString("\n")
	}
}
