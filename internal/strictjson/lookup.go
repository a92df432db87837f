package strictjson

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Pointer is a parsed JSON pointer (RFC 6901). The zero value means the whole
// document.
type Pointer struct{ tokens []string }

// ParsePointer reads a JSON pointer: empty, or tokens that each begin with a
// slash, with ~0 for ~ and ~1 for a slash.
func ParsePointer(s string) (Pointer, error) {
	if s == "" {
		return Pointer{}, nil
	}
	if s[0] != '/' {
		return Pointer{}, fmt.Errorf("a JSON pointer begins with a slash: /%s", s)
	}
	tokens := strings.Split(s[1:], "/")
	for i, token := range tokens {
		bare := strings.NewReplacer("~0", "", "~1", "").Replace(token)
		if strings.Contains(bare, "~") {
			return Pointer{}, fmt.Errorf("in a JSON pointer ~ is written ~0 and a slash inside a name ~1")
		}
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	return Pointer{tokens}, nil
}

// Value is one value of a document. The zero value is none.
type Value struct {
	document *Document
	index    uint32
}

// Root is the whole document's value.
func (d *Document) Root() Value { return Value{d, 0} }

// Lookup returns the value that the pointer points to, and whether there is one.
func (d *Document) Lookup(p Pointer) (Value, bool) {
	v := d.Root()
	for _, token := range p.tokens {
		var ok bool
		if v, ok = v.child(token); !ok {
			return Value{}, false
		}
	}
	return v, true
}

func (v Value) child(token string) (Value, bool) {
	switch v.Kind() {
	case Object:
		return v.Member(token)
	case Array:
		return v.element(token)
	}
	return Value{}, false
}

// Kind is the value's kind.
func (v Value) Kind() Kind { return v.document.nodes[v.index].kind }

// Raw is the value as it stands in the source, without space around it. It
// shares the source's memory.
func (v Value) Raw() []byte {
	n := &v.document.nodes[v.index]
	return v.document.source[n.start:n.end:n.end]
}

// Text is, of a string, its text without quotes and escapes; of any other
// value what Raw returns.
func (v Value) Text() []byte {
	if v.Kind() != String {
		return v.Raw()
	}
	return slices.Clip(v.document.textOf(v.index))
}

// Member returns an object's member of this name.
func (v Value) Member(name string) (Value, bool) {
	if v.Kind() != Object {
		return Value{}, false
	}
	d := v.document
	names := d.namesOf(v.index)
	i, ok := slices.BinarySearchFunc(names, name, func(n uint32, name string) int {
		return bytes.Compare(d.textOf(n), []byte(name))
	})
	if !ok {
		return Value{}, false
	}
	return Value{d, names[i] + 1}, true
}

// Members yields an object's members in the order of the source.
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

// element returns an array's element; the token is a number without leading zeros.
func (v Value) element(token string) (Value, bool) {
	wanted, err := strconv.ParseUint(token, 10, 31)
	if err != nil || strconv.FormatUint(wanted, 10) != token {
		return Value{}, false
	}
	d := v.document
	for i := v.index + 1; i < d.nodes[v.index].next; i = d.after(i) {
		if wanted == 0 {
			return Value{d, i}, true
		}
		wanted--
	}
	return Value{}, false
}

// namesOf lists the name nodes of object i, sorted.
func (d *Document) namesOf(i uint32) []uint32 {
	n := &d.nodes[i]
	return d.order[n.extra : n.extra+n.size]
}

// after is the index after value i and its descendants.
func (d *Document) after(i uint32) uint32 {
	if n := &d.nodes[i]; n.kind == Array || n.kind == Object {
		return n.next
	}
	return i + 1
}
