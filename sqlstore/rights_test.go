package sqlstore

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/sqlform"
)

// forTheOwner lists statements that only the owner of the tables sends: the statements of migrations, and the
// statements that create, move and drop tables with daily partitions.
var forTheOwner = []string{"migrations", "migrated", "new dated", "new moving", "end moving", "cleared", "move", "reaper"}

var (
	inQuotes   = regexp.MustCompile(`'(?:[^']|'')*'`)
	touched    = regexp.MustCompile(`(?i)\b(insert into|update|delete from|from|join|using)\s+\{prefix\}([a-z_]+)\b(?: as)?(?: ([a-z]+)\b)?`)
	onConflict = regexp.MustCompile(`(?is)insert into \{prefix\}([a-z_]+)\b.*?\son conflict\s+(?:\([^)]*\)\s+)?do (update|nothing)`)
	locksRows  = regexp.MustCompile(`(?i)for (?:no key )?(?:update|share)(?: of ([a-z]+))?`)
	listed     = regexp.MustCompile(`\(1, '([a-z_]+)', '([a-z,]+)'\)`)
)

// addPrivileges adds the privileges that a statement needs on Semel's tables.
func addPrivileges(text string, of map[string]map[string]bool) {
	text = inQuotes.ReplaceAllString(text, "''")
	needs := func(table, privilege string) {
		if of[table] == nil {
			of[table] = map[string]bool{"select": true} // a change of a row also reads the row
		}
		of[table][privilege] = true
	}
	named, last := map[string]string{}, ""
	for _, m := range touched.FindAllStringSubmatch(text, -1) {
		privilege, _, _ := strings.Cut(strings.ToLower(m[1]), " ")
		if !slices.Contains([]string{"insert", "update", "delete"}, privilege) {
			privilege = "select"
		}
		needs(m[2], privilege)
		named[m[3]], last = m[2], m[2]
	}
	for _, m := range onConflict.FindAllStringSubmatch(text, -1) {
		if m[2] == "update" {
			needs(m[1], "update")
		}
	}
	for _, m := range locksRows.FindAllStringSubmatch(text, -1) {
		table := named[m[1]]
		if m[1] == "" {
			table = last
		}
		if table != "" { // a table without a name is a user's own table or has daily partitions
			needs(table, "update")
		}
	}
}

func TestTheRightsAreThoseThatTheStatementsNeed(t *testing.T) {
	files, err := fs.Glob(postgresFiles, "postgres/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	want, list := map[string]map[string]bool{}, ""
	for _, file := range files {
		text, err := fs.ReadFile(postgresFiles, file)
		if err != nil {
			t.Fatal(err)
		}
		statements, err := sqlform.Texts(string(text))
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range statements {
			switch {
			case name == "rights":
				list = text
			case !slices.Contains(forTheOwner, name):
				addPrivileges(text, want)
			}
		}
	}
	got := map[string]string{}
	for _, m := range listed.FindAllStringSubmatch(list, -1) {
		got[m[1]] = m[2]
	}
	for table, privileges := range want {
		all := slices.DeleteFunc([]string{"select", "insert", "update", "delete"}, func(p string) bool { return !privileges[p] })
		if text := strings.Join(all, ","); got[table] != text {
			t.Errorf("statements need %s in %s, and the rights have %q", text, table, got[table])
		}
		delete(got, table)
	}
	for table := range got {
		t.Errorf("the rights have %s, which no statement needs", table)
	}
}
