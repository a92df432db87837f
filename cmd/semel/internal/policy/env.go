package policy

import (
	"fmt"
	"strings"
)

// expand replaces ${NAME} and ${NAME:-default} by the environment; $${ stands
// for ${ itself. It reports faults and whether the text is usable.
func (d *decoder) expand(p place, text string) (string, bool) {
	var b strings.Builder
	ok := true
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			b.WriteString(text)
			return b.String(), ok
		}
		if i > 0 && text[i-1] == '$' {
			b.WriteString(text[:i-1] + "${")
			text = text[i+2:]
			continue
		}
		b.WriteString(text[:i])
		end := strings.IndexByte(text[i:], '}')
		if end < 0 {
			d.fault(p, "${ has no closing }", "close it, or write $${ for the characters themselves")
			return "", false
		}
		value, found := d.variable(p, text[i+2:i+end])
		ok = ok && found
		b.WriteString(value)
		text = text[i+end+1:]
	}
}

func (d *decoder) variable(p place, reference string) (string, bool) {
	name, fallback, hasFallback := strings.Cut(reference, ":-")
	if !isVariable(name) {
		d.fault(p, fmt.Sprintf("%q is no name of an environment variable", name), "write ${NAME} or ${NAME:-default}")
		return "", false
	}
	if strings.Contains(fallback, "${") {
		d.fault(p, fmt.Sprintf("the default of ${%s:-…} holds another variable, and defaults are taken as they stand", name),
			"write one variable with a plain default, and let the environment choose")
		return "", false
	}
	value, found := d.env(name)
	switch {
	case found && (value != "" || !hasFallback):
		return value, true
	case hasFallback:
		return fallback, true
	}
	d.fault(p, fmt.Sprintf("the environment variable %s is not set", name),
		fmt.Sprintf("set it, or write ${%s:-default}", name))
	return "", false
}

func isVariable(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
