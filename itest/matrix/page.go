package matrix

import (
	"fmt"
	"strings"
)

const introduction = `# The crash matrix

This page is for reviewers and contributors. ` + "`go test ./itest/matrix -run Page -update`" + ` writes it, and a test compares it.

A consumer processes four messages of two partitions and two keys. One fault disturbs it: at a point that a message passes (package ` + "`faults`" + `), of one kind, with one strategy, lane mode and store. Then other consumers finish the work, and at the end all messages are delivered a second time. Each combination is a *cell*. In a cell that runs, no message may be

* **lost**: acked without an effect;
* **doubled**: with two effects, with two idempotency keys at the other system, or with more calls than one fault can cause;
* **stuck**: not acked, or still waiting in the inbox.

A cell that cannot run has a reason of a closed list. ` + "`make test`" + ` runs a part of the cells, ` + "`make verify`" + ` runs all.
`

// page returns the text of the page of the matrix.
func page() string {
	var out strings.Builder
	out.WriteString(introduction)
	out.WriteString("\n## By store and strategy\n\nThe first number counts the cells that run, the second the impossible cells.\n\n")
	table(&out, "strategy", strategies(), func(c cell) strategy { return c.Strategy })
	out.WriteString("\n## By store and kind of fault\n\n")
	table(&out, "fault", kinds(), func(c cell) kind { return c.Kind })
	out.WriteString("\n## By store and point\n\n")
	table(&out, "point", points(), func(c cell) point { return c.Point })
	out.WriteString("\n## Why cells are impossible\n\n| cells | reason |\n|---|---|\n")
	for r := possible + 1; r < reasons; r++ {
		fmt.Fprintf(&out, "| %d | %s |\n", number(func(c cell) bool { return c.impossible() == r }), r)
	}
	return out.String()
}

// table writes a table with a line for each value of a dimension, and a column for each store.
func table[D ~string](out *strings.Builder, name string, values []D, of func(cell) D) {
	fmt.Fprintf(out, "| %s |", name)
	for _, b := range bases() {
		fmt.Fprintf(out, " %s |", b)
	}
	fmt.Fprintf(out, " all |\n|---|%s\n", strings.Repeat("---|", len(bases())+1))
	for _, v := range append(values, "") {
		is := func(c cell) bool { return v == "" || of(c) == v }
		name := "all"
		if v != "" {
			name = string(v)
		}
		fmt.Fprintf(out, "| %s |", name)
		for _, b := range append(bases(), "") {
			in := func(c cell) bool { return is(c) && (b == "" || c.Base == b) }
			runs := number(func(c cell) bool { return in(c) && c.impossible() == possible })
			fmt.Fprintf(out, " %d / %d |", runs, number(in)-runs)
		}
		out.WriteString("\n")
	}
}

// number returns how many cells of the whole matrix have a property.
func number(has func(cell) bool) (n int) {
	for _, c := range cells(false) {
		if has(c) {
			n++
		}
	}
	return n
}
