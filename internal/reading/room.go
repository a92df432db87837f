// Package reading provides the parser and the hash with which a goroutine reads deliveries. Parser and hash
// are shared by all readers of a delivery, so that each text is parsed only once.
package reading

import (
	"crypto/sha256"
	"hash"
	"strings"
	"sync"
	"unsafe"

	"github.com/semel-go/semel/internal/strictjson"
)

// Room contains the parser, hash and buffers with which one goroutine reads deliveries. A Room remembers the last
// parsed text, and the value in that text that became the message body. Text and body are recognised by their address
// in memory, so that Body returns the value without parsing again. The zero value is ready to use. Results are valid
// until the room parses another text.
type Room struct {
	parser   strictjson.Parser
	text     []byte
	document *strictjson.Document
	fault    error
	// body is the part of text from which inner was parsed.
	body  []byte
	inner strictjson.Value

	texts    strings.Builder
	repeated string

	hash   hash.Hash
	sum    [sha256.Size]byte
	buffer []byte
	parses int
}

// Parse parses a text as strict JSON. Parse does not use an earlier result, because the memory at the same address may
// contain other bytes now. An error is a *strictjson.Error.
func (r *Room) Parse(text []byte) (*strictjson.Document, error) {
	r.parses++
	r.text, r.body, r.inner = text, nil, strictjson.Value{}
	r.document, r.fault = r.parser.Parse(text)
	return r.document, r.fault
}

// Became records that the message body is the value v of the last parsed text, byte for byte.
func (r *Room) Became(v strictjson.Value) { r.body, r.inner = v.Raw(), v }

// Body returns the parsed message body. If the body is the last parsed text, or the value passed to Became, Body does
// not parse the body again.
func (r *Room) Body(body []byte) (strictjson.Value, error) {
	if r.body != nil && sameMemory(r.body, body) {
		return r.inner, nil
	}
	if r.text == nil || !sameMemory(r.text, body) {
		_, _ = r.Parse(body) // the error is kept in r.fault
	}
	if r.fault != nil {
		return strictjson.Value{}, r.fault
	}
	return r.document.Root(), nil
}

// Proof returns a proof that body is strict JSON, if this room has parsed the body successfully. For any other body,
// Proof returns the empty proof. Proof never parses.
func (r *Room) Proof(body []byte) strictjson.Proof {
	switch {
	case r.body != nil && sameMemory(r.body, body):
		return r.inner.Proof()
	case r.text != nil && r.fault == nil && sameMemory(r.text, body):
		return r.document.Proof()
	}
	return strictjson.Proof{}
}

// sameMemory reports whether two slices share the same memory. For equal bytes at another address, sameMemory returns
// false, because comparing bytes would slow down every message with a separate body.
func sameMemory(a, b []byte) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// Begin forgets the texts of the last delivery, because the memory of that delivery may be reused.
func (r *Room) Begin() { r.text, r.body, r.inner = nil, nil, strictjson.Value{} }

// Forget drops all references to texts and results, so that they can be garbage collected.
func (r *Room) Forget() {
	r.Begin()
	r.document, r.fault = nil, nil
	r.parser.Forget()
}

// textPiece is the size of a memory block that short strings share. As long as one string of a block is in use, the
// whole block stays in memory. Therefore blocks are small compared with a message.
const textPiece = 256

// Text returns b as a string that stays valid. Short strings share memory blocks, so most short strings need
// no allocation.
func (r *Room) Text(b []byte) string {
	if len(b) > textPiece/4 {
		return string(b)
	}
	if r.texts.Cap()-r.texts.Len() < len(b) {
		r.texts.Reset()
		r.texts.Grow(textPiece)
	}
	first := r.texts.Len()
	r.texts.Write(b)
	return r.texts.String()[first:]
}

// Repeated does the same as Text, for values that are usually equal in successive messages.
func (r *Room) Repeated(b []byte) string {
	if len(b) > textPiece {
		return string(b) // too large to be reused
	}
	if string(b) != r.repeated {
		r.repeated = string(b)
	}
	return r.repeated
}

// Hash returns an empty SHA-256 hash.
func (r *Room) Hash() hash.Hash {
	if r.hash == nil {
		r.hash = sha256.New()
	}
	r.hash.Reset()
	return r.hash
}

// Sum returns the digest of Hash. The result is valid until the next call of Sum.
func (r *Room) Sum() []byte { return r.hash.Sum(r.sum[:0]) }

// Buffer returns an empty buffer for short use. When the buffer has grown, pass it to Keep.
func (r *Room) Buffer() []byte { return r.buffer[:0] }

// mostKept is the maximum size of a buffer that a Room reuses for the next message.
const mostKept = 64 << 10

// Keep stores a buffer for the next call of Buffer.
func (r *Room) Keep(buffer []byte) {
	if cap(buffer) <= mostKept {
		r.buffer = buffer
	}
}

// Parses returns the number of parsed texts.
func (r *Room) Parses() int { return r.parses }

// idle is a pool of rooms for callers that read a single message.
var idle = sync.Pool{New: func() any { return new(Room) }}

// Borrow returns a room from the pool. Pass the room to Return after use.
func Borrow() *Room { return idle.Get().(*Room) }

// Return puts a borrowed room back into the pool. Results that were read with the room become invalid.
func (r *Room) Return() {
	r.Forget()
	idle.Put(r)
}
