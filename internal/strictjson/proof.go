package strictjson

import (
	"math"
	"sync/atomic"
)

// Proof records that a text is strict JSON. Only a Parser makes proofs. A proof holds for the
// same memory that was parsed, which must not change. The zero value proves nothing.
type Proof struct {
	first  *byte
	length uint32
	// typeAsked records that the type of the message was requested, and that it has none. The
	// flag is here because a Proof has four unused bytes; in Message it would take another
	// word. Access it with sync/atomic only.
	typeAsked uint32
}

func proofOf(text []byte) Proof {
	if int64(len(text)) > math.MaxUint32 {
		return Proof{}
	}
	return Proof{first: &text[0], length: uint32(len(text))}
}

// AskForType records that the type of a message without a type was requested.
func (p *Proof) AskForType() { atomic.StoreUint32(&p.typeAsked, 1) }

// TypeAsked reports whether AskForType was called.
func (p *Proof) TypeAsked() bool { return atomic.LoadUint32(&p.typeAsked) != 0 }

// Proof returns the proof of the parsed text, including the space around its value.
func (d *Document) Proof() Proof { return proofOf(d.source) }

// Proof returns the proof of v.Raw().
func (v Value) Proof() Proof { return proofOf(v.Raw()) }

// Holds reports whether text is the memory that was parsed. An equal text at another address
// does not count.
func (p Proof) Holds(text []byte) bool {
	return p.first != nil && len(text) == int(p.length) && &text[0] == p.first
}
