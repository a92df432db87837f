package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var createsTable = regexp.MustCompile(`(?m)^create table (?:if not exists )?\{prefix\}(\w+)`)

// docs/internals/details.md says for each table how its rows are deleted, or that its rows are never deleted.
func TestEveryTableHasAnEndOrSaysThatItHasNone(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/internals/details.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	_, table, _ := strings.Cut(string(text), "\n| table | a row is | its end |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, line := range strings.Split(table, "\n") {
		for _, m := range quoted.FindAllStringSubmatch(strings.Split(line+"||", "|")[1], -1) {
			told[m[1]] = true
		}
	}
	files, err := filepath.Glob(root + "/sqlstore/*/*/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		sql, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range createsTable.FindAllStringSubmatch(string(sql), -1) {
			if found++; !told[m[1]] {
				t.Errorf("%s creates the table %s, but docs/internals/details.md does not say what deletes its rows", filepath.Base(file), m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("found only %d tables; the search is broken", found)
	}
}
