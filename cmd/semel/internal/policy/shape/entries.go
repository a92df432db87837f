package shape

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/spelling"
	"go.yaml.in/yaml/v4"
)

// entry is a key of a mapping and the key's value.
type entry struct {
	Place
	key *yaml.Node
}

// Value returns the node. For a YAML alias, Value returns the node that the alias refers to.
func (p Place) Value() *yaml.Node {
	n := p.Node
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// Entries yields the entries of a mapping. Entries reports entries with unusable keys as faults and skips
// them.
func (d *Decoder) Entries(p Place) iter.Seq2[string, entry] {
	return func(yield func(string, entry) bool) {
		seen := map[string]int{}
		content := p.Value().Content
		for i := 0; i+1 < len(content); i += 2 {
			k := content[i]
			e := entry{Place: p.key(k.Value, content[i+1]), key: k}
			if !d.usableKey(p, e, seen) {
				continue
			}
			seen[k.Value] = k.Line
			if !yield(k.Value, e) {
				return
			}
		}
	}
}

func (d *Decoder) usableKey(p Place, e entry, seen map[string]int) bool {
	switch {
	case e.key.Kind != yaml.ScalarNode:
		d.Fault(Place{Path: p.Path, Node: e.key}, "a key must be a plain word", "write NAME: value")
	case e.key.ShortTag() == "!!merge":
		d.FaultKey(e, "merge keys are not supported", "write the keys out, or use an alias for a whole value")
	case strings.Contains(e.key.Value, "${"):
		d.FaultKey(e, "environment variables are not expanded in keys", "write the key itself; ${NAME} works in values")
	case seen[e.key.Value] > 0:
		d.FaultKey(e, fmt.Sprintf("this key is already on line %d", seen[e.key.Value]), "keep one of them")
	default:
		return true
	}
	return false
}

// FaultKey records that a key is wrong. FaultAt is for wrong values.
func (d *Decoder) FaultKey(e entry, reason, remedy string) {
	d.report(Invalid, e.Path, Position{e.key.Line, e.key.Column}, reason, remedy)
}

// UnknownKey reports an unknown key. UnknownKey returns the known key that is most similar, or "" if no key
// is similar. The parameter keys describes the keys of the object.
func (d *Decoder) UnknownKey(p Place, e entry, name string, known, available []string, keys []Meta) string {
	remedy, near := "the keys here are "+strings.Join(available, ", "), ""
	if cut := cutOff(p, e); cut != "" {
		remedy = fmt.Sprintf("within braces a comma ends the value of %s: put a text with commas in quotes, or write it as a block", cut)
	} else if holder := holderOf(name, keys); holder != "" {
		remedy = fmt.Sprintf("write it within %s, as %s: {%s: …}", holder, holder, name)
	} else if near = NearestWord(name, known); near != "" {
		remedy = fmt.Sprintf("did you mean %s?", near)
		d.misspelledKeys[p.key(near, p.Node).Path] = true
	}
	d.FaultKey(e, "this key is unknown", remedy)
	return near
}

// cutOff returns the key before e whose text was probably cut off by a comma within braces, so that the
// rest of the text became the key e; otherwise "".
func cutOff(p Place, e entry) string {
	content := p.Value().Content
	if p.Value().Style&yaml.FlowStyle == 0 || !isEmpty(e.Value()) {
		return ""
	}
	for i := slices.Index(content, e.key) - 1; i > 0; i -= 2 {
		if value := content[i]; !isEmpty(value) {
			if value.Kind == yaml.ScalarNode && value.Style == 0 && value.ShortTag() == "!!str" {
				return content[i-1].Value
			}
			return ""
		}
	}
	return ""
}

// isEmpty reports whether a key has no value.
func isEmpty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "" && n.ShortTag() == "!!null"
}

// holderOf returns the key below which the unknown key belongs. holderOf returns "" if no key, or more than
// one key, has a nested key of that name.
func holderOf(name string, keys []Meta) (holder string) {
	for _, k := range keys {
		if k.Later || !slices.ContainsFunc(k.Shape.Keys(), func(m Meta) bool { return m.Name == name && !m.Later }) {
			continue
		}
		if holder != "" {
			return ""
		}
		holder = k.Name
	}
	return holder
}

// notYet reports a planned key that is not available yet.
func (d *Decoder) notYet(p Place) {
	d.report(NotYet, p.Path, Position{p.Node.Line, p.Node.Column}, "this key is known and not yet available", "leave it out in this release; docs/reference/policy lists the available keys")
}

// WrongType reports that the value must have another type.
func (d *Decoder) WrongType(p Place, want string) {
	d.Fault(p, kindOf(p.Value())+" stands here", "write "+want)
}

func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!null":
		return "nothing"
	case n.ShortTag() == "!!str":
		return "text"
	case n.ShortTag() == "!!bool":
		return "true or false"
	default:
		return "a number or date"
	}
}

// NearestWord returns the known word that is most similar to word, or "" if no word is similar.
func NearestWord(word string, known []string) string {
	return spelling.Nearest(strings.ToLower(word), known, len(word)/3+2)
}
