// Package strictjson reads JSON without repairing it. What two readers could
// understand differently is refused: invalid UTF-8, lone surrogates, repeated
// member names, text after the value. A repaired text could give two messages
// one identity.
//
// A document is parsed once into a flat list of nodes; look-ups and the
// canonical form work on that list. Strings with escapes are decoded once, all
// other text is a span of the source, which must not change while the document
// is in use. A text that was parsed is proven to be strict JSON (Proof): values
// are looked up in it later by Find, without nodes and faster.
//
// Text is read eight bytes at a time, and names are compared by their first
// eight bytes before anything else.
package strictjson

import "fmt"

// MaxDepth is how deep arrays and objects may be nested.
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

// kindOf is the kind of a value by its first byte.
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

// Error says where and why a text is refused. It carries nothing of the text.
type Error struct {
	// Offset is the byte at which the fault was found, from 0.
	Offset int
	// Problem is what is wrong there.
	Problem string
}

func (e *Error) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.Problem) }

// node is one value or member name. Its children follow it in the list. Its
// kind is told by the first byte of its span.
type node struct {
	// start and end are the node's span in the source, quotes included.
	start, end uint32
	// next is, of an array or object, the index after its last descendant; of
	// a string with escapes, the end of its text in Document.text, which is
	// never 0.
	next uint32
	// extra is, of an object, where its names are in Document.order; of a
	// string with escapes, the begin of its text in Document.text; of a number,
	// plainInteger or 0.
	extra uint32
}

// Document is a parsed text. It is used by one goroutine.
type Document struct {
	source []byte
	nodes  []node
	// text holds the decoded text of all strings that have escapes.
	text []byte
	// order lists, object by object, how many names it has and their nodes,
	// sorted by their bytes. It begins with the list of an empty object.
	order []uint32
	// scratch and decimal are room for WriteCanonical.
	scratch, decimal []byte
}
