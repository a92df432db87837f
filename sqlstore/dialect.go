package sqlstore

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/semel-go/semel"
)

// dialect is what differs between databases beside the text of their SQL.
type dialect struct {
	// name names the folder of the dialect's SQL and appears in errors.
	name  string
	files fs.FS
	// writers is how many transactions may write at once; 0 is any number.
	writers int
	// list is the most tuples of a statement with a list.
	list int
	// classify judges an error by its code; 0 if it has none.
	classify func(err error) semel.Class
	// remedy says what to do about an error; empty if it cannot tell.
	remedy func(err error) string
	// rolledBack reports whether an error of COMMIT proves that nothing was
	// committed.
	rolledBack func(err error) bool
}

// statements are a dialect's SQL with a prefix, by name.
type statements map[string]string

var (
	prefixForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,31}$`)
	listForm   = regexp.MustCompile(`(?s)\{list:(.*?)\}`)
)

// load reads the dialect's statements and puts the prefix in.
func (d *dialect) load(prefix string) (statements, error) {
	if !prefixForm.MatchString(prefix) {
		return nil, fmt.Errorf("sqlstore: table prefix %q: use a letter or underscore, then at most 31 letters, digits or underscores", prefix)
	}
	found := statements{}
	for _, name := range []string{"marks.sql", "rows.sql", "house.sql"} {
		text, err := fs.ReadFile(d.files, d.name+"/"+name)
		if err != nil {
			return nil, err
		}
		for section := range strings.SplitSeq(string(text), "-- name: ") {
			if name, body, ok := strings.Cut(section, "\n"); ok {
				found[name] = strings.ReplaceAll(strings.TrimSuffix(strings.TrimSpace(body), ";"), "{prefix}", prefix)
			}
		}
	}
	return found, nil
}

// list is the statement with its {list:tuple} repeated n times.
func (s statements) list(name string, n int) string {
	text := s[name]
	at := listForm.FindStringSubmatchIndex(text)
	tuple := text[at[2]:at[3]]
	return text[:at[0]] + strings.Repeat(tuple+", ", n-1) + tuple + text[at[1]:]
}
