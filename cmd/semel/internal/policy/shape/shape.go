package shape

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Shape reads and describes one kind of value. The parser, the JSON Schema and the reference use the same
// shape, so parser, schema and reference agree.
type Shape[V any] interface {
	// Read returns the value. After a fault, Read returns false and a value that may be incomplete.
	Read(d *Decoder, p Place) (V, bool)
	describer
}

// describer is the descriptive part of a shape.
type describer interface {
	// Schema returns the JSON Schema of the value.
	Schema() Schema
	// Words returns a description for the reference, such as "duration, 1ms to 24h".
	Words() string
	// Keys returns the nested keys of the value, for the reference.
	Keys() []Meta
}

// Meta describes a key.
type Meta struct {
	Name string
	// Doc is one or two sentences for the reference and the JSON Schema.
	Doc string
	// Def is the default as written in the file; empty if the key has no default.
	Def string
	// Required means that a policy without the key has a fault.
	Required bool
	// Later marks a planned key that is not available yet.
	Later bool
	// Shape describes the value; nil for a planned key.
	Shape describer
}

// Field is a key of an object. T is the Go type of the object.
type Field[T any] struct {
	Meta
	read func(d *Decoder, p Place, into *T)
	// absent is the value that is read if the file does not have the key; nil to read nothing.
	absent *yaml.Node
}

// Key returns a field. The function ref returns a pointer to the place for the field's value.
func Key[T, V any](m Meta, s Shape[V], ref func(*T) *V) Field[T] {
	f := Field[T]{Meta: m}
	f.Shape = s
	f.read = func(d *Decoder, p Place, into *T) {
		*ref(into), _ = s.Read(d, p)
	}
	if m.Def != "" {
		f.absent = &yaml.Node{Kind: yaml.ScalarNode, Value: m.Def}
	}
	return f
}

// Group returns a field with nested keys. The defaults of nested keys apply even if the file does not have
// the key.
func Group[T, V any](m Meta, s Object[V], ref func(*T) *V) Field[T] {
	f := Key(m, s, ref)
	f.absent = &yaml.Node{Kind: yaml.MappingNode}
	return f
}

// Later returns a field for a planned key that is not available yet.
func Later[T any](name, doc string) Field[T] {
	return Field[T]{Meta: Meta{Name: name, Doc: doc, Later: true}}
}

// Object reads a mapping with a fixed set of keys.
type Object[T any] struct {
	Fields []Field[T]
	// OneOf lists keys of which the file must have exactly one.
	OneOf []string
	// Unsaid is the text of the fault if a file has none of the keys in OneOf. If Unsaid is empty, the fault has a
	// general text.
	Unsaid string
	// Short reads a value that is not a mapping; nil if the value must be a mapping.
	Short Shape[T]
}

func (o Object[T]) Read(d *Decoder, p Place) (T, bool) {
	var v T
	n := p.Value()
	if n.Kind != yaml.MappingNode && o.Short != nil {
		return o.Short.Read(d, p)
	}
	if n.Kind != yaml.MappingNode {
		d.WrongType(p, "a mapping with keys of "+strings.Join(o.available(o.names()), ", "))
		return v, false
	}
	before := len(d.faults)
	seen := o.readGiven(d, p, &v)
	o.readAbsent(d, p, seen, &v)
	o.choose(d, p, seen)
	return v, !slices.ContainsFunc(d.faults[before:], Fault.isRefusal)
}

func (f Fault) isRefusal() bool { return f.Kind != Warning }

func (o Object[T]) readGiven(d *Decoder, p Place, v *T) map[string]bool {
	seen := map[string]bool{}
	for name, at := range d.Entries(p) {
		seen[name] = true
		i := slices.IndexFunc(o.Fields, func(f Field[T]) bool { return f.Name == name })
		switch {
		case i < 0:
			seen[d.UnknownKey(p, at, name, o.names(), o.available(o.names()), o.Keys())] = true
		case o.Fields[i].Later:
			d.notYet(at.Place)
		default:
			d.Note(at.Place)
			o.Fields[i].read(d, at.Place, v)
		}
	}
	return seen
}

func (o Object[T]) readAbsent(d *Decoder, p Place, seen map[string]bool, v *T) {
	for _, f := range o.Fields {
		switch {
		case seen[f.Name]: // the file has the key, or a misspelled key that probably means this key
		case f.Required:
			d.Fault(p.key(f.Name, p.Node), "this key is missing", fmt.Sprintf("add %s: %s", f.Name, f.Shape.Words()))
		}
		if f.absent != nil && !d.Given(p.key(f.Name, p.Node).Path) {
			f.read(d, p.key(f.Name, f.absent), v)
		}
	}
}

func (o Object[T]) choose(d *Decoder, p Place, seen map[string]bool) {
	if len(o.OneOf) == 0 {
		return
	}
	var given []string
	for _, name := range o.OneOf {
		if seen[name] {
			given = append(given, name)
		}
	}
	switch {
	case len(given) == 0 && p.Node.Line > 0:
		d.Fault(p, cmp.Or(o.Unsaid, "its kind is missing"), "give exactly one of "+strings.Join(o.available(o.OneOf), ", "))
	case len(given) > 1:
		d.Fault(p, strings.Join(given, " and ")+" exclude each other", "keep exactly one of them")
	}
}

func (o Object[T]) names() []string {
	var names []string
	for _, f := range o.Fields {
		names = append(names, f.Name)
	}
	return names
}

// available returns the names of all keys that are not planned keys.
func (o Object[T]) available(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(o.Fields, func(f Field[T]) bool { return f.Name == name && f.Later })
	})
}

func (o Object[T]) Keys() []Meta {
	var all []Meta
	for _, f := range o.Fields {
		all = append(all, f.Meta)
	}
	return all
}

func (o Object[T]) Words() string {
	if o.Short != nil {
		return o.Short.Words() + ", or a mapping"
	}
	return "a mapping"
}

// Named reads a mapping with names that the user chooses. The values keep the file's order.
type Named[T any] struct {
	Item Shape[T]
	// The field What is the kind of the named things, such as "store". Error messages use What.
	What string
	Set  func(*T, string)
}

func (t Named[T]) Read(d *Decoder, p Place) ([]*T, bool) {
	if p.Value().Kind != yaml.MappingNode {
		d.WrongType(p, t.Words())
		return nil, false
	}
	var all []*T
	ok := true
	for name, at := range d.Entries(p) {
		if reason := BadName(name); reason != "" {
			d.FaultKey(at, reason, "use letters, digits, '_', '-' and '.', at most 100 of them")
			ok = false
		}
		d.Note(at.Place)
		v, good := t.Item.Read(d, at.Place)
		ok = ok && good
		t.Set(&v, name)
		all = append(all, &v)
	}
	if len(p.Value().Content) == 0 {
		ok = false
		d.Fault(p, "there is no "+t.What, "name at least one")
	}
	return all, ok
}

func (t Named[T]) Keys() []Meta {
	return []Meta{{Name: strings.ToUpper(t.What), Doc: "A " + t.What + " of this name.", Shape: t.Item}}
}

func (t Named[T]) Words() string { return "a mapping of " + t.What + " names" }

// BadName returns why a name is invalid, or "" for a valid name.
func BadName(name string) string {
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

// List reads a list of values.
type List[V any] struct {
	Item Shape[V]
	// Single also accepts one value without brackets.
	Single bool
}

func (l List[V]) Read(d *Decoder, p Place) ([]V, bool) {
	n := p.Value()
	if n.Kind != yaml.SequenceNode {
		if !l.Single || n.Kind != yaml.ScalarNode {
			d.WrongType(p, l.Words())
			return nil, false
		}
		v, ok := l.Item.Read(d, p)
		return []V{v}, ok
	}
	if len(n.Content) == 0 {
		d.Fault(p, "the list is empty", "give at least one value")
		return nil, false
	}
	all, ok := make([]V, 0, len(n.Content)), true
	for i, c := range n.Content {
		at := p.item(i, c)
		d.Note(at)
		v, good := l.Item.Read(d, at)
		all, ok = append(all, v), ok && good
	}
	return all, ok
}

func (l List[V]) Keys() []Meta { return l.Item.Keys() }

func (l List[V]) Words() string {
	if l.Single {
		return l.Item.Words() + ", or a list of them"
	}
	return "a list, each item " + l.Item.Words()
}

// Pointer reads an optional value into a pointer.
type Pointer[V any] struct{ to Shape[V] }

// Optional returns a shape that reads an optional value into a pointer.
func Optional[V any](to Shape[V]) Pointer[V] { return Pointer[V]{to} }

func (s Pointer[V]) Read(d *Decoder, p Place) (*V, bool) {
	v, ok := s.to.Read(d, p)
	return &v, ok
}

func (s Pointer[V]) Schema() Schema { return s.to.Schema() }
func (s Pointer[V]) Words() string  { return s.to.Words() }
func (s Pointer[V]) Keys() []Meta   { return s.to.Keys() }
