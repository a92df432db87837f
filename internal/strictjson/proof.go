package strictjson

import (
	"math"
	"sync/atomic"
)

// Proof records that a text is strict JSON. Only a Parser makes proofs. A Proof is valid only for the memory that was
// parsed, and only while that memory does not change. The zero Proof is valid for no text.
type Proof struct {
	first  *byte
	length uint32
	// typeAsked records that a program has read the type of the message, and that the message has no type. The flag is
	// a field of Proof because a Proof has four unused bytes; in Message the flag would need another word. Use
	// typeAsked only with sync/atomic.
	typeAsked uint32
}

func proofOf(text []byte) Proof {
	if int64(len(text)) > math.MaxUint32 {
		return Proof{}
	}
	return Proof{first: &text[0], length: uint32(len(text))}
}

// AskForType records that a program has read the type of a message without a type.
func (p *Proof) AskForType() { atomic.StoreUint32(&p.typeAsked, 1) }

// TypeAsked reports whether AskForType was called.
func (p *Proof) TypeAsked() bool { return atomic.LoadUint32(&p.typeAsked) != 0 }

// Proof returns a Proof that the parsed text, including the space around its value, is strict JSON.
func (d *Document) Proof() Proof { return proofOf(d.source) }

// Proof returns a Proof that v.Raw() is strict JSON.
func (v Value) Proof() Proof { return proofOf(v.Raw()) }

// Holds reports whether text is the memory that was parsed. For an equal text at another address, Holds
// returns false.
func (p Proof) Holds(text []byte) bool {
	return p.first != nil && len(text) == int(p.length) && &text[0] == p.first
}
