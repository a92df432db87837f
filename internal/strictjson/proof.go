package strictjson

import (
	"math"
	"sync/atomic"
)

// Proof says that a text is strict JSON. A Parser makes it, and it holds for
// the very bytes that were parsed, which must not change. The zero value
// proves nothing.
type Proof struct {
	first  *byte
	length uint32
	// typeAsked is a note about the message that has the proof: its type was asked for, and
	// it has none. It is kept here because a proof has four bytes to spare, and one word
	// more in each message is more than the note is worth. Only sync/atomic uses it.
	typeAsked uint32
}

func proofOf(text []byte) Proof {
	if int64(len(text)) > math.MaxUint32 {
		return Proof{}
	}
	return Proof{first: &text[0], length: uint32(len(text))}
}

// AskForType notes that the type of a message without one was asked for.
func (p *Proof) AskForType() { atomic.StoreUint32(&p.typeAsked, 1) }

// TypeAsked reports whether AskForType was called.
func (p *Proof) TypeAsked() bool { return atomic.LoadUint32(&p.typeAsked) != 0 }

// Proof is the proof of the text that was parsed, with the space around its
// value.
func (d *Document) Proof() Proof { return proofOf(d.source) }

// Proof is the proof of v.Raw().
func (v Value) Proof() Proof { return proofOf(v.Raw()) }

// Holds reports whether text is what was parsed: the same memory, not an equal
// text elsewhere.
func (p Proof) Holds(text []byte) bool {
	return p.first != nil && len(text) == int(p.length) && &text[0] == p.first
}
