package terminal

import (
	"bytes"
	"strings"
	"testing"
)

func newNotesTable() *Table {
	t := &Table{Columns: []Column{{Title: "NUMBER"}, {Title: "ID", Flexible: true}, {Title: "ERROR", Flexible: true}}}
	t.Add("7", "pay-00001", "no such account\n"+strings.Repeat("x", 60))
	t.Add("12", "日本", "")
	return t
}

func TestATableFitsTheWidth(t *testing.T) {
	var out bytes.Buffer
	if err := newNotesTable().Write(&out, 40); err != nil {
		t.Fatal(err)
	}
	want := `
NUMBER  ID         ERROR
7       pay-00001  no such account\nxxx…
12      日本
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("got:%s\nwant:%s", got, want)
	}
	for columns := 1; columns < 120; columns++ {
		out.Reset()
		if err := newNotesTable().Write(&out, columns); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if Columns(strings.TrimSuffix(line, "\n")) > columns {
				t.Errorf("%q does not fit into %d columns", line, columns)
			}
		}
	}
}

func TestATableWithoutLimitCutsNothing(t *testing.T) {
	var out bytes.Buffer
	if err := newNotesTable().Write(&out, Unlimited); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), strings.Repeat("x", 60)+"\n") || strings.Contains(out.String(), "…") {
		t.Errorf("the table is:\n%s", out.String())
	}
}
