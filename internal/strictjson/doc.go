// Package strictjson reads JSON without repairing it. The package rejects texts that different
// readers may understand differently: invalid UTF-8, lone surrogates, repeated member names, or
// text after the value. Repairing such a text could give two messages the same identity.
//
// A document is parsed once into a flat list of nodes; look-ups and the canonical form use
// that list. Strings with escapes are decoded once. All other text refers to the source, which
// must not change while the document is in use. A parsed text is proven to be strict JSON
// (Proof): Find looks up values in it later, without nodes and faster.
//
// Text is read eight bytes at a time, and names are compared first by their first eight bytes.
package strictjson

import "fmt"

// MaxDepth is the maximum nesting depth of arrays and objects.
const MaxDepth = 1000

// maxLength keeps offsets in 32 bits.
const maxLength = 1<<31 - 1

// Kind is the kind of a value.
type Kind uint8

// The kinds.
const (
	Null Kind = iota + 1
	Bool
	Number
	String
	Array
	Object
)

// kindOf returns the kind of a value from its first byte.
func kindOf(c byte) Kind {
	switch c {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}
	return Number
}

// Error says where and why a text was rejected. Error contains nothing from the text.
type Error struct {
	// Offset is the byte offset of the fault, starting at 0.
	Offset int
	// Problem describes the fault.
	Problem string
}

func (e *Error) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.Problem) }

// node is a value or a member name. Its children follow it in the list. The first byte of its
// span determines its kind.
type node struct {
	// start and end are the node's span in the source, quotes included.
	start, end uint32
	// next depends on the kind. For an array or object, it is the index after the last
	// descendant. For a string with escapes, it is the end of the decoded text in
	// Document.text, which is never 0.
	next uint32
	// extra depends on the kind. For an object, it is the index of its names in
	// Document.order. For a string with escapes, it is the begin of the decoded text in
	// Document.text. For a number, it is plainInteger or 0.
	extra uint32
}

// Document is a parsed text. Only one goroutine may use it at a time.
type Document struct {
	source []byte
	nodes  []node
	// text holds the decoded text of all strings that have escapes.
	text []byte
	// order contains, for each object, the number of its names and their nodes, sorted by name.
	// order begins with the entry of an empty object.
	order []uint32
	// scratch and decimal are buffers for WriteCanonical.
	scratch, decimal []byte
}
