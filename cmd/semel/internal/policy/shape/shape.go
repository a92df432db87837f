package shape

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Shape reads and describes one kind of value, so that the parser, the JSON Schema and the reference
// cannot disagree.
type Shape[V any] interface {
	// Read returns the value. Read returns false after it has recorded a fault; then the value may
	// be incomplete.
	Read(d *Decoder, p Place) (V, bool)
	described
}

// described is the description of a shape.
type described interface {
	// Schema returns the JSON Schema of the value.
	Schema() Schema
	// Words returns the description for the reference, such as "duration, 1ms to 24h".
	Words() string
	// Keys returns the keys below the value, for the reference.
	Keys() []Meta
}

// Meta describes a key.
type Meta struct {
	Name string
	// Doc is a sentence or two for the reference and the schema.
	Doc string
	// Def is the default as written in the file; empty if there is none.
	Def string
	// Required makes the absence a fault.
	Required bool
	// Later marks a key that is known but not yet available.
	Later bool
	// Shape describes the value; nil for a later key.
	Shape described
}

// Field is a key of an object that becomes a T.
type Field[T any] struct {
	Meta
	read func(d *Decoder, p Place, into *T)
	// absent, when set, is read when the key is not given.
	absent *yaml.Node
}

// Key declares a key whose value goes to where ref points.
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

// Group declares a key with keys below it. Their defaults apply even if the key is not given.
func Group[T, V any](m Meta, s Object[V], ref func(*T) *V) Field[T] {
	f := Key(m, s, ref)
	f.absent = &yaml.Node{Kind: yaml.MappingNode}
	return f
}

// Later declares a key that is known but not yet available.
func Later[T any](name, doc string) Field[T] {
	return Field[T]{Meta: Meta{Name: name, Doc: doc, Later: true}}
}

// Object is a mapping with known keys.
type Object[T any] struct {
	Fields []Field[T]
	// OneOf are the names of keys of which exactly one must be given.
	OneOf []string
	// Unsaid is the reason of the fault if none is given; empty for a general reason.
	Unsaid string
	// Short, if not nil, reads a value that is not a mapping.
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
	return v, !slices.ContainsFunc(d.faults[before:], Fault.refuses)
}

func (f Fault) refuses() bool { return f.Kind != Warning }

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
		case seen[f.Name]: // or meant by a misspelled key
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

// available returns the names without the later keys.
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

// Named is a mapping whose keys are names that the user chooses. Its order is kept.
type Named[T any] struct {
	Item Shape[T]
	// What is the kind of the named things for messages, such as "store".
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

// BadName returns the reason why a name is not allowed, or "".
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

// List is one value or several.
type List[V any] struct {
	Item Shape[V]
	// Single allows one value without brackets.
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

// Pointer is a value that may be absent.
type Pointer[V any] struct{ to Shape[V] }

// Optional returns the shape of a value that may be absent.
func Optional[V any](to Shape[V]) Pointer[V] { return Pointer[V]{to} }

func (s Pointer[V]) Read(d *Decoder, p Place) (*V, bool) {
	v, ok := s.to.Read(d, p)
	return &v, ok
}

func (s Pointer[V]) Schema() Schema { return s.to.Schema() }
func (s Pointer[V]) Words() string  { return s.to.Words() }
func (s Pointer[V]) Keys() []Meta   { return s.to.Keys() }
