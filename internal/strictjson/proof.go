package strictjson

// Proof says that a text is strict JSON. A Parser makes it, and it holds for
// the very bytes that were parsed, which must not change. The zero value
// proves nothing.
type Proof struct {
	first  *byte
	length int
}

func proofOf(text []byte) Proof { return Proof{&text[0], len(text)} }

// Proof is the proof of the text that was parsed, with the space around its
// value.
func (d *Document) Proof() Proof { return proofOf(d.source) }

// Proof is the proof of v.Raw().
func (v Value) Proof() Proof { return proofOf(v.Raw()) }

// Holds reports whether text is what was parsed: the same memory, not an equal
// text elsewhere.
func (p Proof) Holds(text []byte) bool {
	return p.first != nil && len(text) == p.length && &text[0] == p.first
}
