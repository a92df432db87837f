// Package shape reads YAML files strictly. A shape reads one kind of value, and describes the value for the
// JSON Schema and the reference. A Decoder records every fault with position, reason and remedy.
package shape

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Decoder reads one file and collects its faults.
type Decoder struct {
	file, dir string
	env       func(string) (string, bool)
	faults    []Fault
	// refusedPaths has the paths of faults that reject the policy. refusedParents has all paths
	// above a refused path. The rules look up many paths; with the maps refusedPaths and refusedParents, the rules do
	// not take quadratic time.
	refusedPaths, refusedParents map[string]bool
	// Positions maps paths to the positions of their values in the file.
	Positions map[string]Position
	// misspelledKeys has the paths of known keys that the user probably misspelled.
	misspelledKeys map[string]bool
	// expansions has the texts with expanded environment variables, by path.
	expansions map[string]expansion
}

// Found returns the number of faults and warnings that were found until now.
func (d *Decoder) Found() int { return len(d.faults) }

// NewDecoder returns a decoder for a file. Relative paths in the file start from dir.
func NewDecoder(file, dir string, env func(string) (string, bool)) *Decoder {
	return &Decoder{file: file, dir: dir, env: env, Positions: map[string]Position{}, misspelledKeys: map[string]bool{}, expansions: map[string]expansion{}}
}

// expansion is a text before (raw) and after (text) the expansion of environment variables.
type expansion struct{ raw, text string }

// conceal replaces the expanded text in a message with the raw text of the file.
func (e expansion) conceal(message string) string {
	if e.text == "" {
		return message
	}
	return strings.ReplaceAll(message, e.text, e.raw)
}

// Place is a value of the file: the YAML node and the path of keys to the node.
type Place struct {
	Path string
	Node *yaml.Node
	// Raw is the text before environment variables were expanded; empty if the text has no variables.
	Raw string
	// Bracketed means that the value is an item within brackets, where a comma ends a text without quotes.
	Bracketed bool
}

func (p Place) key(name string, n *yaml.Node) Place {
	if p.Path != "" {
		name = p.Path + "." + name
	}
	return Place{Path: name, Node: n}
}

func (p Place) item(i int, n *yaml.Node) Place {
	return Place{Path: fmt.Sprintf("%s[%d]", p.Path, i), Node: n, Bracketed: p.Value().Style&yaml.FlowStyle != 0}
}

// Fault records that the value at p is wrong.
func (d *Decoder) Fault(p Place, reason, remedy string) {
	d.report(Invalid, p.Path, Position{p.Node.Line, p.Node.Column}, reason, remedy)
}

// FaultAt records that the value at path is wrong or missing.
func (d *Decoder) FaultAt(path, reason, remedy string) {
	d.report(Invalid, path, Nearest(d.Positions, path), reason, remedy)
}

// WarnAt records that the value at path is valid but probably a mistake.
func (d *Decoder) WarnAt(path, reason, remedy string) {
	d.report(Warning, path, Nearest(d.Positions, path), reason, remedy)
}

func (d *Decoder) report(k FaultKind, path string, at Position, reason, remedy string) {
	hidden := d.expansions[path]
	d.faults = append(d.faults, Fault{File: d.file, Line: max(at.Line, 1), Column: max(at.Column, 1), Kind: k,
		Path: path, Reason: hidden.conceal(reason), Remedy: hidden.conceal(remedy)})
	if !d.faults[len(d.faults)-1].isRefusal() {
		return
	}
	if d.refusedPaths == nil {
		d.refusedPaths, d.refusedParents = map[string]bool{}, map[string]bool{}
	}
	d.refusedPaths[path] = true
	for i := range len(path) {
		if path[i] == '.' || path[i] == '[' {
			d.refusedParents[path[:i]] = true
		}
	}
}

// Given reports whether the file gives a value at path.
func (d *Decoder) Given(path string) bool {
	_, ok := d.Positions[path]
	return ok
}

// Note records the position of a value.
func (d *Decoder) Note(p Place) {
	if p.Node.Line > 0 {
		d.Positions[p.Path] = Position{p.Node.Line, p.Node.Column}
	}
}

// Document returns the root of the file's only YAML document, or nil after a fault.
func (d *Decoder) Document(data []byte) *yaml.Node {
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
		d.report(Invalid, "", Position{1, 1}, "the file is empty", "see docs/reference/policy for what it needs")
		return nil
	case err != nil:
		d.syntax(err, data)
		return nil
	}
	if err := loader.Load(&second); err == nil {
		d.report(Invalid, "", Position{second.Line, second.Column}, "the file has several documents",
			"keep one document in each file")
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err, data)
	}
	root := rootOf(&first)
	d.checkTags(root)
	return root
}

func rootOf(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		return n.Content[0]
	}
	return n
}

// syntax records an error of the YAML parser.
func (d *Decoder) syntax(err error, data []byte) {
	at, reason := Position{1, 1}, err.Error()
	var one *yaml.LoadError
	if errors.As(err, &one) {
		reason = one.Message
		if one.ContextMsg != "" {
			reason += " " + one.ContextMsg
		}
		if one.Mark.Line > 0 {
			at = Position{one.Mark.Line, one.Mark.Column}
		}
	}
	remedy := "correct the indentation, brackets or quotes here"
	if all := bytes.Split(data, []byte("\n")); at.Line <= len(all) && bytes.Contains(all[at.Line-1], []byte("${")) {
		remedy = `put "${NAME}" in quotes inside braces`
	}
	d.report(Invalid, "", at, "this is not YAML: "+reason, remedy)
}

// badText returns the position of the first byte that YAML does not allow, and the reason. The YAML parser
// itself reports no position for a byte that YAML does not allow.
func badText(data []byte) (Position, string) {
	at := Position{1, 1}
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size == 1:
			return at, "this byte is not UTF-8"
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0x7f:
			return at, fmt.Sprintf("control character %U is not allowed", r)
		}
		at.Column++
		if r == '\n' {
			at = Position{at.Line + 1, 1}
		}
		data = data[size:]
	}
	return at, ""
}

// knownTags are the YAML tags that a policy may use.
var knownTags = [...]string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq"}

// checkTags reports unknown YAML tags. If the method did not report an unknown tag, the parser would
// ignore the tag and read the value.
func (d *Decoder) checkTags(n *yaml.Node) {
	if tag := n.ShortTag(); n.Style&yaml.TaggedStyle != 0 && !slices.Contains(knownTags[:], tag) {
		d.report(Invalid, "", Position{n.Line, n.Column}, fmt.Sprintf("the tag %.40s is unknown", tag), "write the value without a tag")
		n.Tag, n.Style = "", n.Style&^yaml.TaggedStyle // remove the tag, so that the parser reports no second fault
	}
	for _, below := range n.Content {
		d.checkTags(below)
	}
}

// expand replaces ${NAME} and ${NAME:-default} with environment variables. The text $${ stands for a literal
// ${. expand records faults, and returns false if the text is unusable.
func (d *Decoder) expand(p Place, text string) (string, bool) {
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
			d.Fault(p, "${ has no closing }", "close it, or write $${ for the characters themselves")
			return "", false
		}
		value, found := d.variable(p, text[i+2:i+end])
		ok = ok && found
		b.WriteString(value)
		text = text[i+end+1:]
	}
}

func (d *Decoder) variable(p Place, reference string) (string, bool) {
	name, fallback, hasFallback := strings.Cut(reference, ":-")
	if !IsVariable(name) {
		d.Fault(p, fmt.Sprintf("%q is not a valid name of an environment variable", name), "write ${NAME} or ${NAME:-default}")
		return "", false
	}
	if strings.Contains(fallback, "${") {
		d.Fault(p, fmt.Sprintf("the default of ${%s:-…} contains another variable, but defaults are not expanded", name),
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
	d.Fault(p, fmt.Sprintf("the environment variable %s is not set", name),
		fmt.Sprintf("set it, or write ${%s:-default}", name))
	return "", false
}

// IsVariable reports whether a text is a valid name of an environment variable.
func IsVariable(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// Faulty reports whether the value at path has a fault. Faulty ignores faults of nested values.
func (d *Decoder) Faulty(path string) bool {
	return d.refusedPaths[path]
}

// Sound reports whether neither path nor any path below has a fault. Sound returns false if the file has a
// misspelled key that probably means path.
func (d *Decoder) Sound(path string) bool {
	return !d.misspelledKeys[path] && !d.refusedPaths[path] && !d.refusedParents[path]
}
