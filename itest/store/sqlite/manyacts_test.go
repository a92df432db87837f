package sqlite

import (
	"database/sql"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/itest/store/sqlsuite"
)

func TestActsOnManyRows(t *testing.T) {
	c := &counter{path: newFile(t)}
	db := sql.OpenDB(c)
	t.Cleanup(func() { _ = db.Close() })
	s := storeOn(t, db)
	_, coded := db.Exec("no statement")
	answers := []error{coded, io.ErrUnexpectedEOF} // no error proves that nothing was committed
	lose := func() func() {
		answer := answers[0]
		answers = answers[1:]
		c.committed = func() error { return answer }
		return func() { c.committed = nil }
	}
	sqlsuite.ManyActs[*sql.Tx]{Store: s, Statements: c.n.Load, Lose: lose, Poison: func(t testing.TB, number int64) func() {
		exec(t, db, fmt.Sprintf("create trigger poison before update on semel_inbox when old.number = %d begin select raise(abort, 'poisoned'); end", number))
		return func() { exec(t, db, "drop trigger poison") }
	}}.Run(t)
}

// SQLite plans a statement without looking at its arguments. The plan therefore shows whether a table is
// scanned for each of many rows.
func TestActsFindTheirRowsByKeys(t *testing.T) {
	db := openFile(t, newFile(t), pragmas+foreignKeys)
	storeOn(t, db)
	var files []string
	for _, name := range []string{"rows", "claims", "marks", "derivations", "lines"} {
		text, err := os.ReadFile("../../../sqlstore/sqlite/" + name + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, string(text))
	}
	statements, err := sqlform.Texts(files...)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"acted rows", "other rows", "requeue rows", "discard rows", "reopen rows", "suppress rows", "complete rows",
		"forget calls", "skip rows", "advance lines", "forget lines", "markers wait", "new markers wait", "turn markers", "record acts"} {
		text, _, _ := strings.Cut(strings.ReplaceAll(statements[name], "{prefix}", "semel_"), ";")
		rows, err := db.Query("explain query plan "+text, []any{"[]", "", "", "", ""}[:highestParameter(text)]...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for rows.Next() {
			var id, parent, unused int
			var step string
			if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
				t.Fatal(err)
			}
			if table, _, _ := strings.Cut(strings.TrimPrefix(step, "SCAN "), " "); strings.HasPrefix(step, "SCAN ") && table != "a" && table != "l" || strings.Contains(step, "(state=") {
				t.Errorf("%s reads a whole table: %s", name, step)
			}
		}
		if err := rows.Err(); err != nil {
			t.Error(err)
		}
	}
}

// highestParameter returns the highest number of a parameter in a statement.
func highestParameter(text string) (n int) {
	for i := 1; strings.Contains(text, fmt.Sprint("?", i)); i++ {
		n = i
	}
	return n
}
