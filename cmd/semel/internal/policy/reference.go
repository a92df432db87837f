package policy

import (
	"fmt"
	"strings"
)

// referenceOf is a table of all keys as Markdown, for docs/policy.md.
func referenceOf(keys []meta) string {
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
func (r *referenceText) keys(path string, all []meta) {
	r.table(path, all)
	for _, m := range all {
		at := join(path, m.name)
		switch {
		case m.later:
			fmt.Fprintf(&r.later, "| `%s` | %s |\n", at, m.doc)
			continue
		case len(m.shape.keys()) > 0:
			r.keys(at, m.shape.keys())
		}
	}
}

func (r *referenceText) table(path string, all []meta) {
	if len(all) == 1 && strings.ToUpper(all[0].name) == all[0].name {
		return // only names that the user chooses
	}
	title := "The file"
	if path != "" {
		title = "`" + path + "`"
	}
	fmt.Fprintf(&r.b, "\n### %s\n\n| key | value | default | meaning |\n|---|---|---|---|\n", title)
	for _, m := range all {
		if !m.later {
			fmt.Fprintf(&r.b, "| `%s` | %s | %s | %s |\n", m.name, m.shape.words(), m.absence(), m.doc)
		}
	}
}

func (m meta) absence() string {
	switch {
	case m.required:
		return "required"
	case m.def != "":
		return "`" + m.def + "`"
	}
	return ""
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
