package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A shape reads one kind of value and describes it. Everything that is known
// of a kind of value is in its shape, so that the parser, the JSON Schema and
// the reference cannot disagree.
type shape[V any] interface {
	// read returns the value, and false after it recorded a fault; then the
	// value is what could be read of it.
	read(d *decoder, p place) (V, bool)
	described
}

// described is what a shape says of itself.
type described interface {
	// schema is the JSON Schema of the value.
	schema() schema
	// words say it in a reference: "duration, 1ms to 24h".
	words() string
	// keys are the keys below it, for the reference.
	keys() []meta
}

// meta is what is known of a key besides how its value is read.
type meta struct {
	name string
	// doc is a sentence or two for the reference and the schema.
	doc string
	// def is the default as it would stand in the file; empty if there is none.
	def string
	// required refuses the absence.
	required bool
	// later marks a key that Semel will have and does not have yet.
	later bool
	// shape describes the value; nil for a later key.
	shape described
}

// field is a key of an object that becomes a T.
type field[T any] struct {
	meta
	read func(d *decoder, p place, into *T)
	// absent, when set, is read when the key is not given.
	absent *yaml.Node
}

// key declares a key whose value goes to where ref points.
func key[T, V any](m meta, s shape[V], ref func(*T) *V) field[T] {
	f := field[T]{meta: m}
	f.shape = s
	f.read = func(d *decoder, p place, into *T) {
		*ref(into), _ = s.read(d, p)
	}
	if m.def != "" {
		f.absent = &yaml.Node{Kind: yaml.ScalarNode, Value: m.def}
	}
	return f
}

// group declares a key of further keys whose defaults hold also without it.
func group[T, V any](m meta, s object[V], ref func(*T) *V) field[T] {
	f := key(m, s, ref)
	f.absent = &yaml.Node{Kind: yaml.MappingNode}
	return f
}

// later declares a key that is known and not yet available.
func later[T any](name, doc string) field[T] {
	return field[T]{meta: meta{name: name, doc: doc, later: true}}
}

// object is a mapping with known keys.
type object[T any] struct {
	fields []field[T]
	// oneOf names keys of which exactly one must be given.
	oneOf []string
	// unsaid is the reason where none is given; empty for the usual words.
	unsaid string
	// short, when not nil, reads a value that is no mapping.
	short shape[T]
}

func (o object[T]) read(d *decoder, p place) (T, bool) {
	var v T
	n := p.value()
	if n.Kind != yaml.MappingNode && o.short != nil {
		return o.short.read(d, p)
	}
	if n.Kind != yaml.MappingNode {
		d.wrongType(p, "a mapping with keys of "+strings.Join(o.available(o.names()), ", "))
		return v, false
	}
	before := len(d.faults)
	seen := o.readGiven(d, p, &v)
	o.readAbsent(d, p, seen, &v)
	o.choose(d, p, seen)
	return v, !slices.ContainsFunc(d.faults[before:], Fault.refuses)
}

func (f Fault) refuses() bool { return f.Kind != Warning }

func (o object[T]) readGiven(d *decoder, p place, v *T) map[string]bool {
	seen := map[string]bool{}
	for name, at := range d.entries(p) {
		seen[name] = true
		i := slices.IndexFunc(o.fields, func(f field[T]) bool { return f.name == name })
		switch {
		case i < 0:
			seen[d.unknownKey(p, at, name, o.names(), o.available(o.names()), o.keys())] = true
		case o.fields[i].later:
			d.notYet(at.place)
		default:
			d.note(at.place)
			o.fields[i].read(d, at.place, v)
		}
	}
	return seen
}

func (o object[T]) readAbsent(d *decoder, p place, seen map[string]bool, v *T) {
	for _, f := range o.fields {
		switch {
		case seen[f.name]: // or meant by a misspelled key
		case f.required:
			d.fault(p.key(f.name, p.node), "this key is missing", fmt.Sprintf("add %s: %s", f.name, f.shape.words()))
		}
		if f.absent != nil && !d.given(p.key(f.name, p.node).path) {
			f.read(d, p.key(f.name, f.absent), v)
		}
	}
}

func (o object[T]) choose(d *decoder, p place, seen map[string]bool) {
	if len(o.oneOf) == 0 {
		return
	}
	var given []string
	for _, name := range o.oneOf {
		if seen[name] {
			given = append(given, name)
		}
	}
	switch {
	case len(given) == 0 && p.node.Line > 0:
		d.fault(p, cmp.Or(o.unsaid, "what it is is not said"), "give exactly one of "+strings.Join(o.available(o.oneOf), ", "))
	case len(given) > 1:
		d.fault(p, strings.Join(given, " and ")+" exclude one another", "keep exactly one of them")
	}
}

func (o object[T]) names() []string {
	var names []string
	for _, f := range o.fields {
		names = append(names, f.name)
	}
	return names
}

// available are those of the keys that are not for later.
func (o object[T]) available(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(o.fields, func(f field[T]) bool { return f.name == name && f.later })
	})
}

func (o object[T]) keys() []meta {
	var all []meta
	for _, f := range o.fields {
		all = append(all, f.meta)
	}
	return all
}

func (o object[T]) words() string {
	if o.short != nil {
		return o.short.words() + ", or a mapping"
	}
	return "a mapping"
}

// named is a mapping of names that the user chooses, in order.
type named[T any] struct {
	item shape[T]
	// what the names are of, for messages: "store".
	what string
	set  func(*T, string)
}

func (t named[T]) read(d *decoder, p place) ([]*T, bool) {
	if p.value().Kind != yaml.MappingNode {
		d.wrongType(p, t.words())
		return nil, false
	}
	var all []*T
	ok := true
	for name, at := range d.entries(p) {
		if reason := badName(name); reason != "" {
			d.faultKey(at, reason, "use letters, digits, '_', '-' and '.', at most 100 of them")
			ok = false
		}
		d.note(at.place)
		v, good := t.item.read(d, at.place)
		ok = ok && good
		t.set(&v, name)
		all = append(all, &v)
	}
	if len(p.value().Content) == 0 {
		ok = false
		d.fault(p, "there is no "+t.what, "name at least one")
	}
	return all, ok
}

func (t named[T]) keys() []meta {
	return []meta{{name: strings.ToUpper(t.what), doc: "A " + t.what + " of this name.", shape: t.item}}
}

func (t named[T]) words() string { return "a mapping of " + t.what + " names" }

func badName(name string) string {
	if name == "" || len(name) > 100 {
		return fmt.Sprintf("a name has 1 to 100 characters, not %d", len(name))
	}
	for _, r := range name {
		if !strings.ContainsRune("_-.", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return fmt.Sprintf("the name %q holds %q", name, r)
		}
	}
	return ""
}

// list is one value or several.
type list[V any] struct {
	item shape[V]
	// single allows one value without the brackets.
	single bool
}

func (l list[V]) read(d *decoder, p place) ([]V, bool) {
	n := p.value()
	if n.Kind != yaml.SequenceNode {
		if !l.single || n.Kind != yaml.ScalarNode {
			d.wrongType(p, l.words())
			return nil, false
		}
		v, ok := l.item.read(d, p)
		return []V{v}, ok
	}
	if len(n.Content) == 0 {
		d.fault(p, "the list is empty", "give at least one value")
		return nil, false
	}
	all, ok := make([]V, 0, len(n.Content)), true
	for i, c := range n.Content {
		at := p.item(i, c)
		d.note(at)
		v, good := l.item.read(d, at)
		all, ok = append(all, v), ok && good
	}
	return all, ok
}

func (l list[V]) keys() []meta { return l.item.keys() }

func (l list[V]) words() string {
	if l.single {
		return l.item.words() + ", or a list of them"
	}
	return "a list, each item " + l.item.words()
}

// pointer is a value that may be absent.
type pointer[V any] struct{ to shape[V] }

func (s pointer[V]) read(d *decoder, p place) (*V, bool) {
	v, ok := s.to.read(d, p)
	return &v, ok
}

func (s pointer[V]) schema() schema { return s.to.schema() }
func (s pointer[V]) words() string  { return s.to.words() }
func (s pointer[V]) keys() []meta   { return s.to.keys() }
