package strictjson

import (
	"bytes"
	"iter"
	"slices"
)

// Value is one value of a document. The zero value refers to no value, and its methods must not be called.
type Value struct {
	document *Document
	index    uint32
}

// Root returns the value of the whole document.
func (d *Document) Root() Value { return Value{d, 0} }

// Lookup returns the value to which the pointer points. The second result is false if there is no such value.
func (d *Document) Lookup(p Pointer) (Value, bool) {
	return d.Root().Lookup(p)
}

func (v Value) child(t token) (Value, bool) {
	switch v.Kind() {
	case Object:
		return v.Member(t.name)
	case Array:
		return v.element(t.index)
	}
	return Value{}, false
}

// Kind returns the kind of the value.
func (v Value) Kind() Kind { return v.document.kind(v.index) }

// Raw returns the value exactly as in the source, without the space around it. Raw shares the
// memory of the source.
func (v Value) Raw() []byte {
	n := &v.document.nodes[v.index]
	return v.document.source[n.start:n.end:n.end]
}

// Text returns the text of a string without quotes and escapes. For other values, Text returns Raw.
func (v Value) Text() []byte {
	if v.Kind() != String {
		return v.Raw()
	}
	return slices.Clip(v.document.textOf(v.index))
}

// Member returns the member with this name. The second result is false if v is no object or has no such member.
func (v Value) Member(name string) (Value, bool) {
	if v.Kind() != Object {
		return Value{}, false
	}
	d := v.document
	names := d.namesOf(v.index)
	if len(names) > fewNames {
		i, _ := slices.BinarySearchFunc(names, name, func(n uint32, name string) int {
			return bytes.Compare(d.textOf(n), []byte(name))
		})
		names = names[i:min(i+1, len(names))]
	}
	for _, n := range names {
		if text := d.textOf(n); string(text) == name {
			return Value{d, n + 1}, true
		}
	}
	return Value{}, false
}

// Members yields the members of an object in the order of the source.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.Kind() != Object {
			return
		}
		d := v.document
		for i := v.index + 1; i < d.nodes[v.index].next; i = d.after(i + 1) {
			if !yield(string(d.textOf(i)), Value{d, i + 1}) {
				return
			}
		}
	}
}

// Elements yields the elements of an array in order.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != Array {
			return
		}
		d := v.document
		for i := v.index + 1; i < d.nodes[v.index].next; i = d.after(i) {
			if !yield(Value{d, i}) {
				return
			}
		}
	}
}

// element returns the element with this index. The second result is false if the array has no such element.
func (v Value) element(index int) (Value, bool) {
	if index < 0 {
		return Value{}, false
	}
	d := v.document
	for i := v.index + 1; i < d.nodes[v.index].next; i = d.after(i) {
		if index == 0 {
			return Value{d, i}, true
		}
		index--
	}
	return Value{}, false
}

func (d *Document) kind(i uint32) Kind { return kindOf(d.source[d.nodes[i].start]) }

// namesOf returns the name nodes of object i, sorted.
func (d *Document) namesOf(i uint32) []uint32 {
	names := d.order[d.nodes[i].extra:]
	return names[1 : 1+names[0]]
}

// after returns the index of the first node after value i and its descendants.
func (d *Document) after(i uint32) uint32 {
	n := &d.nodes[i]
	if c := d.source[n.start]; c == '{' || c == '[' {
		return n.next
	}
	return i + 1
}
