package policy

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/semel-go/semel/internal/spelling"
)

// entry is a key of a mapping with its value.
type entry struct {
	place
	key *yaml.Node
}

// value is the node itself, or what an alias stands for.
func (p place) value() *yaml.Node {
	n := p.node
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// entries yields the keys of a mapping, after faults for those that are none.
func (d *decoder) entries(p place) iter.Seq2[string, entry] {
	return func(yield func(string, entry) bool) {
		seen := map[string]int{}
		content := p.value().Content
		for i := 0; i+1 < len(content); i += 2 {
			k := content[i]
			e := entry{place: p.key(k.Value, content[i+1]), key: k}
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

func (d *decoder) usableKey(p place, e entry, seen map[string]int) bool {
	switch {
	case e.key.Kind != yaml.ScalarNode:
		d.fault(place{path: p.path, node: e.key}, "a key must be a plain word", "write NAME: value")
	case e.key.ShortTag() == "!!merge":
		d.faultKey(e, "merge keys are not read", "write the keys out, or use an alias for a whole value")
	case strings.Contains(e.key.Value, "${"):
		d.faultKey(e, "the environment is not read in keys", "write the key itself; ${NAME} works in values")
	case seen[e.key.Value] > 0:
		d.faultKey(e, fmt.Sprintf("this key stands on line %d already", seen[e.key.Value]), "keep one of them")
	default:
		return true
	}
	return false
}

// faultKey records that a key, not its value, is wrong.
func (d *decoder) faultKey(e entry, reason, remedy string) {
	d.report(Invalid, e.path, position{e.key.Line, e.key.Column}, reason, remedy)
}

// unknownKey returns the known key that is probably meant, or empty. keys are the object's.
func (d *decoder) unknownKey(p place, e entry, name string, known, available []string, keys []meta) string {
	remedy, near := "the keys here are "+strings.Join(available, ", "), ""
	if holder := holderOf(name, keys); holder != "" {
		remedy = fmt.Sprintf("write it within %s, as %s: {%s: …}", holder, holder, name)
	} else if near = nearestWord(name, known); near != "" {
		remedy = fmt.Sprintf("did you mean %s?", near)
		d.meant[p.key(near, p.node).path] = true
	}
	d.faultKey(e, "this key is unknown", remedy)
	return near
}

// holderOf is the one of these keys that has a key of this name within; empty if none has, or several.
func holderOf(name string, keys []meta) (holder string) {
	for _, k := range keys {
		if k.later || !slices.ContainsFunc(k.shape.keys(), func(m meta) bool { return m.name == name && !m.later }) {
			continue
		}
		if holder != "" {
			return ""
		}
		holder = k.name
	}
	return holder
}

// notYet records a key that is known and not yet available.
func (d *decoder) notYet(p place) {
	d.report(NotYet, p.path, position{p.node.Line, p.node.Column}, "this key is known and not yet available", "leave it out in this release; docs/policy.md lists what there is")
}

func (d *decoder) wrongType(p place, want string) {
	d.fault(p, kindOf(p.value())+" stands here", "write "+want)
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

// nearestWord is the known word that is most likely meant, or empty.
func nearestWord(word string, known []string) string {
	return spelling.Nearest(strings.ToLower(word), known, len(word)/3+2)
}
