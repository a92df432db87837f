package shape

import (
	"fmt"
	"strings"
)

// ReferenceOf is a table of all keys as Markdown, for docs/policy.md.
func ReferenceOf(keys []Meta) string {
	var r referenceText
	r.keys("", keys)
	r.b.WriteString("\n### Known and not yet available\n\n")
	r.b.WriteString("A policy with one of these is refused with exit code 3, never read as if it were not there.\n\n")
	r.b.WriteString("| key | what it will be |\n|---|---|\n")
	r.b.WriteString(r.later.String())
	return r.b.String()
}

type referenceText struct {
	b, later strings.Builder
}

// keys writes the table of one mapping, and then those below it.
func (r *referenceText) keys(path string, all []Meta) {
	r.table(path, all)
	for _, m := range all {
		at := join(path, m.Name)
		switch {
		case m.Later:
			fmt.Fprintf(&r.later, "| `%s` | %s |\n", at, m.Doc)
			continue
		case len(m.Shape.Keys()) > 0:
			r.keys(at, m.Shape.Keys())
		}
	}
}

func (r *referenceText) table(path string, all []Meta) {
	if len(all) == 1 && strings.ToUpper(all[0].Name) == all[0].Name {
		return // only names that the user chooses
	}
	title := "The file"
	if path != "" {
		title = "`" + path + "`"
	}
	fmt.Fprintf(&r.b, "\n### %s\n\n| key | value | default | meaning |\n|---|---|---|---|\n", title)
	for _, m := range all {
		if !m.Later {
			fmt.Fprintf(&r.b, "| `%s` | %s | %s | %s |\n", m.Name, m.Shape.Words(), m.absence(), m.Doc)
		}
	}
}

func (m Meta) absence() string {
	switch {
	case m.Required:
		return "required"
	case m.Def != "":
		return "`" + m.Def + "`"
	}
	return ""
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
