// Package strictjson reads JSON and rejects every text that two readers may understand differently: invalid UTF-8, lone
// surrogates, repeated member names, or text after the value. If the package repaired an ambiguous text, two messages
// could get the same identity.
//
// A document is parsed once into a flat list of nodes. Look-ups and the canonical form use the list of nodes. Strings
// with escapes are decoded once. Strings without escapes, and numbers, refer to the source, which must not change while
// the document is in use. After parsing, the text is known to be strict JSON (Proof). In a text that is known to be
// strict JSON, Find can look up values without nodes, which is faster.
//
// The package reads text eight bytes at a time. Names are compared first by their first eight bytes.
package strictjson

import "fmt"

// MaxDepth is the maximum nesting depth of arrays and objects.
const MaxDepth = 1000

// maxLength is the maximum length of a text. The limit ensures that offsets have at most 32 bits.
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

// Error is the reason why a text was rejected, and the position of the fault. Error contains no part of the text.
type Error struct {
	// Offset is the byte offset of the fault, starting at 0.
	Offset int
	// Problem describes the fault.
	Problem string
}

func (e *Error) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.Problem) }

// node is a value or a member name. The children of a node follow the node in the list. The first byte of a node's span
// determines the kind of the node.
type node struct {
	// start and end are the node's span in the source, quotes included.
	start, end uint32
	// The meaning of the field next depends on the kind of the node. For an array or object, next is the index after
	// the last descendant. For a string with escapes, next is the end of the decoded text in Document.text. The end of
	// a decoded text is never 0.
	next uint32
	// The meaning of extra depends on the kind of the node. For an object, extra is the index of its names in
	// Document.order. For a string with escapes, extra is the beginning of the decoded text in Document.text. For a
	// number, the field extra is plainInteger or 0.
	extra uint32
}

// Document is a parsed text. Only one goroutine may use a Document at a time.
type Document struct {
	source []byte
	nodes  []node
	// decodedText contains the decoded text of all strings that have escapes.
	decodedText []byte
	// order contains, for each object, the number of its names, followed by the nodes of the names, sorted by name. The
	// first entry in order is for empty objects.
	order []uint32
	// scratch and decimal are buffers for WriteCanonical.
	scratch, decimal []byte
}
