package semel

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/semel-go/semel/internal/digest"
)

// IdempotencyKey returns the idempotency key to pass to a provider with the call of the given step ("charge",
// "refund"). The key is the same for every attempt, copy and replay of the message. The key differs for other steps,
// messages, sources and consumers.
//
// The key is a UUID of version 8 (RFC 9562, section 5.8), made from a SHA-256 hash of the consumer, source, id and
// step, each preceded by its length. If m has no Identity, IdempotencyKey panics, because all messages without an
// Identity would share one key. The engine sets Identity before it calls a handler.
func (m *Message) IdempotencyKey(step string) string {
	return m.derivedID("idempotency-key/1", step)
}

// OutputID returns an id for an output of this message, such as a receipt. The output is identified by a purpose
// ("receipt") and a recipient. The id is the same for every attempt, copy and replay of the message. OutputID computes
// the id in the same way as IdempotencyKey computes keys, but an id is never equal to a key.
func (m *Message) OutputID(purpose, recipient string) string {
	return m.derivedID("output-id/1", purpose, recipient)
}

// OutputName returns a readable name for an output of this message, in place of OutputID, for systems in which people
// read ids. The name consists of consumer, source, id, purpose and recipient, separated by slashes. Bytes other than
// letters, digits, '.', '-' and '_' are written as % and two hexadecimal digits, so that different parts never give the
// same name. The name can be three times as long as its parts.
func (m *Message) OutputName(purpose, recipient string) string {
	k := m.mustIdentity()
	var b strings.Builder
	for i, part := range []string{k.Consumer, k.Source, k.ID, purpose, recipient} {
		if i > 0 {
			b.WriteByte('/')
		}
		escapeName(&b, part)
	}
	return b.String()
}

func escapeName(b *strings.Builder, part string) {
	for i := range len(part) {
		if c := part[i]; isNameByte(c) {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '-' || c == '_'
}

func (m *Message) mustIdentity() Key {
	if m.Identity.ID == "" {
		panic("semel: the message has no Identity; call this in a handler, make the message of a test with NewMessage, or set Message.Identity first")
	}
	return m.Identity
}

// derivedID returns a UUID made from the identity and further parts.
func (m *Message) derivedID(domain string, parts ...string) string {
	k := m.mustIdentity()
	h := sha256.New()
	digest.Begin(h, domain)
	for _, part := range append([]string{k.Consumer, k.Source, k.ID}, parts...) {
		digest.Part(h, []byte(part))
	}
	return uuid8(h.Sum(nil))
}

// uuid8 formats the first 16 bytes as a UUID of version 8.
func uuid8(sum []byte) string {
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	text := make([]byte, 0, 36)
	for i, b := range sum[:16] {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, []byte{b})
	}
	return string(text)
}
