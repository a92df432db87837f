// Package reading provides the parser and the hash with which a goroutine reads deliveries.
// They are shared, so that each text is parsed only once.
package reading

import (
	"crypto/sha256"
	"hash"
	"strings"
	"sync"
	"unsafe"

	"github.com/semel-go/semel/internal/strictjson"
)

// Room holds the parser, hash and buffers with which one goroutine reads deliveries. Room
// remembers the last parsed text and the value in it that became the message body, and
// recognizes both by their address in memory. So Body returns that value without parsing again.
// The zero value is ready to use. Results are valid until the room parses another text.
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

// Parse parses a text as strict JSON. Parse always parses, because the same address may hold
// other bytes now. Its error is a *strictjson.Error.
func (r *Room) Parse(text []byte) (*strictjson.Document, error) {
	r.parses++
	r.text, r.body, r.inner = text, nil, strictjson.Value{}
	r.document, r.fault = r.parser.Parse(text)
	return r.document, r.fault
}

// Became records that v, a value of the last parsed text, is the message body, byte for byte.
func (r *Room) Became(v strictjson.Value) { r.body, r.inner = v.Raw(), v }

// Body returns the parsed message body. Body parses the body unless the body is the last parsed
// text, or the value passed to Became.
func (r *Room) Body(body []byte) (strictjson.Value, error) {
	if r.body != nil && same(r.body, body) {
		return r.inner, nil
	}
	if r.text == nil || !same(r.text, body) {
		_, _ = r.Parse(body) // the error is kept in r.fault
	}
	if r.fault != nil {
		return strictjson.Value{}, r.fault
	}
	return r.document.Root(), nil
}

// Proof returns a proof that body is strict JSON if this room has parsed it successfully, and
// otherwise the empty proof. Proof never parses.
func (r *Room) Proof(body []byte) strictjson.Proof {
	switch {
	case r.body != nil && same(r.body, body):
		return r.inner.Proof()
	case r.text != nil && r.fault == nil && same(r.text, body):
		return r.document.Proof()
	}
	return strictjson.Proof{}
}

// same reports whether two slices share the same memory. Equal bytes at another address do not
// count, because comparing bytes would slow down every message with a separate body.
func same(a, b []byte) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// Begin forgets the texts of the last delivery, because its memory may be reused.
func (r *Room) Begin() { r.text, r.body, r.inner = nil, nil, strictjson.Value{} }

// Forget drops all references to what was read, so that it can be garbage collected.
func (r *Room) Forget() {
	r.Begin()
	r.document, r.fault = nil, nil
	r.parser.Forget()
}

// textPiece is the size of a memory block that short strings share. While one string is in
// use, its whole block stays in memory, so blocks are small compared with a message.
const textPiece = 256

// Text returns b as a string that stays valid. Short strings share memory blocks, so most need
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

// Repeated is Text for values that rarely change from message to message.
func (r *Room) Repeated(b []byte) string {
	if len(b) > textPiece {
		return string(b) // too large to keep between messages
	}
	if string(b) != r.repeated {
		r.repeated = string(b)
	}
	return r.repeated
}

// Hash returns a SHA-256 hash, reset.
func (r *Room) Hash() hash.Hash {
	if r.hash == nil {
		r.hash = sha256.New()
	}
	r.hash.Reset()
	return r.hash
}

// Sum returns the digest of Hash. It is valid until the next call.
func (r *Room) Sum() []byte { return r.hash.Sum(r.sum[:0]) }

// Buffer returns an empty buffer for short use. Pass it to Keep after it has grown.
func (r *Room) Buffer() []byte { return r.buffer[:0] }

// mostKept limits the size of a buffer that is kept between messages.
const mostKept = 64 << 10

// Keep stores a buffer for the next Buffer.
func (r *Room) Keep(buffer []byte) {
	if cap(buffer) <= mostKept {
		r.buffer = buffer
	}
}

// Parses returns how many texts were parsed.
func (r *Room) Parses() int { return r.parses }

// idle pools rooms for callers that read a single message.
var idle = sync.Pool{New: func() any { return new(Room) }}

// Borrow returns a room from the pool; give it back with Return.
func Borrow() *Room { return idle.Get().(*Room) }

// Return gives a borrowed room back. Results read with it become invalid.
func (r *Room) Return() {
	r.Forget()
	idle.Put(r)
}
