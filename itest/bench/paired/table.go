package paired

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Column is the name of a value, with the format for printing the value.
type Column struct{ Name, Format string }

// Table describes the columns of a comparison.
type Table struct {
	// The field Row is the header of the column with the rows' names. The field Main describes the value to compare.
	// The field More is true if larger values are better.
	Row    string
	Main   Column
	More   bool
	Beside []Column
}

// Write writes the comparison of two commits as Markdown.
func (t Table) Write(w io.Writer, c Comparison, base, present string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Base %s, present %s; %d rounds of base, present, base; %v in all.\n\n", base, present, len(c.Rounds), c.Elapsed.Round(time.Second))
	fmt.Fprintf(&b, "| %s | %s: base | present | present : base | base : itself | verdict |", t.Row, t.Main.Name)
	for _, column := range t.Beside {
		fmt.Fprintf(&b, " %s: base, present |", column.Name)
	}
	b.WriteString("\n" + strings.Repeat("| --- ", 6+len(t.Beside)) + "|\n")
	for _, row := range c.Rows() {
		t.row(&b, row, c.Of(row))
	}
	if alone := c.Alone(); len(alone) > 0 {
		fmt.Fprintf(&b, "\nNot compared, because one of the two does not have them: %s.\n", strings.Join(alone, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t Table) row(b *strings.Builder, name string, r Result) {
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |", name, r.Base.Text(t.Main.Format), r.Present.Text(t.Main.Format),
		r.Ratio.Text("%.3f"), r.Itself.Text("%.3f"), t.verdict(r))
	for i, column := range t.Beside {
		fmt.Fprintf(b, " "+column.Format+", "+column.Format+" |", r.BesideBase[i], r.BesidePresent[i])
	}
	b.WriteString("\n")
}

// verdict returns whether the current tree is better or worse than the base by more than the noise.
func (t Table) verdict(r Result) string {
	change := r.Change()
	switch {
	case change == 0:
		return fmt.Sprintf("as equal code (± %.1f %%)", 100*r.Differs())
	case (change > 0) == t.More:
		return fmt.Sprintf("better (± %.1f %%)", 100*r.Differs())
	}
	return fmt.Sprintf("WORSE (± %.1f %%)", 100*r.Differs())
}
