package policy

import (
	"encoding/base64"
	"fmt"
	"time"

	encrypt "github.com/semel-go/semel/encryption"
)

// The table of a store's encryption.

// Encryption says how a store encrypts what it keeps of messages. Its keys are secrets: never
// print them.
type Encryption struct {
	// Key encrypts; Key and PreviousKeys decrypt; each has encryption.KeySize bytes.
	Key          []byte
	PreviousKeys [][]byte
	// RequiredSince, if not zero, is from when on rows in plain text are refused.
	RequiredSince time.Time
}

func encryptionShape() object[Encryption] {
	return object[Encryption]{fields: []field[Encryption]{
		key(meta{name: "key", required: true, doc: "The key, 32 bytes at random in base64, as `${SHOP_KEY}`; `openssl rand -base64 32` makes one. All processes of a store need the same one. Keep it: without it nobody can read what was kept."},
			encryptionKey{secret{noFile: true}}, func(e *Encryption) *[]byte { return &e.Key }),
		key(meta{name: "previous_keys", doc: "Keys that encrypted before, which are needed for reading. See [erasing and encrypting](erase.md#changing-the-key)."},
			list[[]byte]{item: encryptionKey{secret{noFile: true}}, single: true}, func(e *Encryption) *[][]byte { return &e.PreviousKeys }),
		key(meta{name: "required_since", doc: "From this time on rows in plain text are parked as `unreadable` and not handled, whenever they say that they were received. Without it they are handled. Processes that start later also [encrypt fingerprints](erase.md#keyed-fingerprints). See [refusing plain text](erase.md#refusing-plain-text)."},
			instantOrDate{}, func(e *Encryption) *time.Time { return &e.RequiredSince }),
	}}
}

// encryptionKey is a secret of so many bytes.
type encryptionKey struct{ secret }

func (k encryptionKey) read(d *decoder, p place) ([]byte, bool) {
	text, ok := k.secret.read(d, p)
	if !ok {
		return nil, false
	}
	const remedy = "write into the environment what this prints: openssl rand -base64 32"
	bytes, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		d.fault(p, "the key is no base64", remedy)
		return nil, false
	case len(bytes) != encrypt.KeySize:
		d.fault(p, fmt.Sprintf("the key has %d bytes, and one has %d", len(bytes), encrypt.KeySize), remedy)
		return nil, false
	}
	return bytes, true
}
