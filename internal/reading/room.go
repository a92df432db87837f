// Package reading is what a goroutine needs to read deliveries with: one parser
// and one hash, so that a text is parsed once, whoever asks for what is in it.
package reading

import (
	"crypto/sha256"
	"hash"
	"strings"
	"sync"
	"unsafe"

	"github.com/semel-go/semel/internal/strictjson"
)

// Room is what one goroutine reads with, delivery after delivery. It knows the
// text that it parsed last, and the value inside it that became the message's
// body, by their place in memory: who asks for the body then gets that value.
// The zero value is ready. What it finds is valid until it parses another text.
type Room struct {
	parser   strictjson.Parser
	text     []byte
	document *strictjson.Document
	fault    error
	// body is where inner stands in the text.
	body  []byte
	inner strictjson.Value

	texts    strings.Builder
	repeated string

	hash   hash.Hash
	sum    [sha256.Size]byte
	buffer []byte
	parses int
}

// Parse reads a text as strict JSON, again if it has been read before: other
// bytes may have come to the same place. Its error is a *strictjson.Error.
func (r *Room) Parse(text []byte) (*strictjson.Document, error) {
	r.parses++
	r.text, r.body, r.inner = text, nil, strictjson.Value{}
	r.document, r.fault = r.parser.Parse(text)
	return r.document, r.fault
}

// Became says that v, of the text that was parsed last, is the message's body
// as it stands there.
func (r *Room) Became(v strictjson.Value) { r.body, r.inner = v.Raw(), v }

// Body is the value of a message's body, which is parsed if it is neither the
// text that was parsed last nor what became the body of it.
func (r *Room) Body(body []byte) (strictjson.Value, error) {
	if r.body != nil && same(r.body, body) {
		return r.inner, nil
	}
	if r.text == nil || !same(r.text, body) {
		_, _ = r.Parse(body) // kept as fault
	}
	if r.fault != nil {
		return strictjson.Value{}, r.fault
	}
	return r.document.Root(), nil
}

// Proof says that a body is strict JSON, if it was read here and is; otherwise it
// proves nothing. Nothing is read for it.
func (r *Room) Proof(body []byte) strictjson.Proof {
	switch {
	case r.body != nil && same(r.body, body):
		return r.inner.Proof()
	case r.text != nil && r.fault == nil && same(r.text, body):
		return r.document.Proof()
	}
	return strictjson.Proof{}
}

// same reports whether two texts lie in one place. Equal bytes elsewhere do not
// count: comparing them would cost every message that has a body of its own.
func same(a, b []byte) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// Begin begins with another delivery: other bytes may lie where the last one did.
func (r *Room) Begin() { r.text, r.body, r.inner = nil, nil, strictjson.Value{} }

// Forget keeps nothing that was read from the collector.
func (r *Room) Forget() {
	r.Begin()
	r.document, r.fault = nil, nil
	r.parser.Forget()
}

// textPiece is how many bytes of texts lie in one piece of memory: as long as one
// of them is held, all of the piece is, so that it is small beside what a message
// holds anyway.
const textPiece = 256

// Text is bytes as a string, which stays as it is whatever the room reads next.
// Short ones share pieces of memory: most then cost no allocation.
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

// Repeated is Text for what is mostly the same from message to message.
func (r *Room) Repeated(b []byte) string {
	if len(b) > textPiece {
		return string(b) // it would be held from message to message
	}
	if string(b) != r.repeated {
		r.repeated = string(b)
	}
	return r.repeated
}

// Hash is a SHA-256 without anything in it.
func (r *Room) Hash() hash.Hash {
	if r.hash == nil {
		r.hash = sha256.New()
	}
	r.hash.Reset()
	return r.hash
}

// Sum is what Hash has come to.
func (r *Room) Sum() []byte { return r.hash.Sum(r.sum[:0]) }

// Buffer is room for a few bytes, empty; Keep gives it back when it has grown.
func (r *Room) Buffer() []byte { return r.buffer[:0] }

// mostKept is how many bytes of a buffer are kept from message to message.
const mostKept = 64 << 10

// Keep takes a buffer back.
func (r *Room) Keep(buffer []byte) {
	if cap(buffer) <= mostKept {
		r.buffer = buffer
	}
}

// Parses counts the texts that were parsed.
func (r *Room) Parses() int { return r.parses }

// idle holds rooms of those who read one message.
var idle = sync.Pool{New: func() any { return new(Room) }}

// Borrow gives a room to who has none; Return takes it back.
func Borrow() *Room { return idle.Get().(*Room) }

// Return gives a borrowed room back. What came of it is valid no more.
func (r *Room) Return() {
	r.Forget()
	idle.Put(r)
}
