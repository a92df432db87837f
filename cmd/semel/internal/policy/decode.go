package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// decoder reads one file and gathers what is wrong with it.
type decoder struct {
	file, dir string
	env       func(string) (string, bool)
	faults    []Fault
	// refused are the paths of faults that refuse the policy, and refusedBelow all paths above
	// them: rules ask for each, and a policy with many faults would be read in quadratic time.
	refused, refusedBelow map[string]bool
	// positions are of the values that the file gives, by path.
	positions map[string]position
	// meant are paths of known keys that a misspelled one probably means.
	meant map[string]bool
	// expanded are the texts that the environment was read into, by path.
	expanded map[string]expansion
}

// expansion is a text as the file has it and with the environment read in.
type expansion struct{ raw, text string }

// conceal takes what the environment says out of a message.
func (e expansion) conceal(message string) string {
	if e.text == "" {
		return message
	}
	return strings.ReplaceAll(message, e.text, e.raw)
}

// place is a value of the file: its node and the path that leads to it.
type place struct {
	path string
	node *yaml.Node
	// raw is the text before the environment was read, if it was.
	raw string
}

func (p place) key(name string, n *yaml.Node) place {
	if p.path != "" {
		name = p.path + "." + name
	}
	return place{path: name, node: n}
}

func (p place) item(i int, n *yaml.Node) place {
	return place{path: fmt.Sprintf("%s[%d]", p.path, i), node: n}
}

// fault records that the value at p is wrong.
func (d *decoder) fault(p place, reason, remedy string) {
	d.report(Invalid, p.path, position{p.node.Line, p.node.Column}, reason, remedy)
}

// faultAt records that the value at path, or its absence, is wrong.
func (d *decoder) faultAt(path, reason, remedy string) {
	d.report(Invalid, path, nearest(d.positions, path), reason, remedy)
}

func (d *decoder) warnAt(path, reason, remedy string) {
	d.report(Warning, path, nearest(d.positions, path), reason, remedy)
}

func (d *decoder) report(k FaultKind, path string, at position, reason, remedy string) {
	hidden := d.expanded[path]
	d.faults = append(d.faults, Fault{File: d.file, Line: max(at.line, 1), Column: max(at.column, 1), Kind: k,
		Path: path, Reason: hidden.conceal(reason), Remedy: hidden.conceal(remedy)})
	if !d.faults[len(d.faults)-1].refuses() {
		return
	}
	if d.refused == nil {
		d.refused, d.refusedBelow = map[string]bool{}, map[string]bool{}
	}
	d.refused[path] = true
	for i := range len(path) {
		if path[i] == '.' || path[i] == '[' {
			d.refusedBelow[path[:i]] = true
		}
	}
}

// given reports whether the file gives a value at path.
func (d *decoder) given(path string) bool {
	_, ok := d.positions[path]
	return ok
}

func (d *decoder) note(p place) {
	if p.node.Line > 0 {
		d.positions[p.path] = position{p.node.Line, p.node.Column}
	}
}

// document returns the root of the only document, nil after a fault.
func (d *decoder) document(data []byte) *yaml.Node {
	if at, reason := badText(data); reason != "" {
		d.report(Invalid, "", at, reason, "write the file in UTF-8")
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		d.syntax(err, data)
		return nil
	}
	var first, second yaml.Node
	switch err := loader.Load(&first); {
	case errors.Is(err, io.EOF):
		d.report(Invalid, "", position{1, 1}, "the file is empty", "see docs/policy.md for what it needs")
		return nil
	case err != nil:
		d.syntax(err, data)
		return nil
	}
	if err := loader.Load(&second); err == nil {
		d.report(Invalid, "", position{second.Line, second.Column}, "the file holds several documents",
			"keep one document a file")
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err, data)
	}
	root := rootOf(&first)
	d.tags(root)
	return root
}

func rootOf(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		return n.Content[0]
	}
	return n
}

// syntax records an error of the YAML reader.
func (d *decoder) syntax(err error, data []byte) {
	at, reason := position{1, 1}, err.Error()
	var one *yaml.LoadError
	if errors.As(err, &one) {
		reason = one.Message
		if one.ContextMsg != "" {
			reason += " " + one.ContextMsg
		}
		if one.Mark.Line > 0 {
			at = position{one.Mark.Line, one.Mark.Column}
		}
	}
	remedy := "mend the indentation, brackets or quotes here"
	if all := bytes.Split(data, []byte("\n")); at.line <= len(all) && bytes.Contains(all[at.line-1], []byte("${")) {
		remedy = `put "${NAME}" in quotes inside braces`
	}
	d.report(Invalid, "", at, "this is not YAML: "+reason, remedy)
}

// badText finds the first byte that no YAML file may hold, for which the YAML
// reader has no position.
func badText(data []byte) (position, string) {
	at := position{1, 1}
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size == 1:
			return at, "this byte is not UTF-8"
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0x7f:
			return at, fmt.Sprintf("control character %U is not allowed", r)
		}
		at.column++
		if r == '\n' {
			at = position{at.line + 1, 1}
		}
		data = data[size:]
	}
	return at, ""
}
