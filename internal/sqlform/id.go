// Package sqlform defines how messages and markers are stored in SQL tables. All drivers use package sqlform, so that
// several drivers can use one schema.
package sqlform

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// The first byte of a stored id says how the id is stored, so that different ids are never stored as the same bytes.
// For example, a UUID as a text differs from an id that consists of the 16 bytes of the UUID.
const (
	idAsIs   = 0 // the bytes follow
	idUUID   = 1 // a canonical lower-case UUID: its 16 bytes follow
	idHashed = 2 // a SHA-256 hash follows; the id has a column of its own
)

// longestID is the maximum length of an id that is stored unchanged. Databases limit the length of index keys. Some
// databases compress a key before they compare it with the limit, so the limit depends on the content. longestID is
// below the limit of all databases.
const longestID = 512

const hashDomain = "semel id 1\x00"

// ID returns the bytes under which an id is stored and compared (key). If key is a hash and does not contain the id,
// the result long is the id itself.
func ID(id []byte) (key, long []byte) {
	if u, ok := uuidOf(id); ok {
		key = make([]byte, 17)
		key[0] = idUUID
		copy(key[1:], u[:])
		return key, nil
	}
	if len(id) <= longestID {
		key = make([]byte, 1+len(id))
		key[0] = idAsIs
		copy(key[1:], id)
		return key, nil
	}
	h := sha256.New()
	h.Write([]byte(hashDomain))
	h.Write(id)
	return h.Sum([]byte{idHashed}), id
}

// OriginalID is the inverse of ID.
func OriginalID(key, long []byte) (id string, ok bool) {
	key = InnerKey(key)
	switch {
	case len(key) > 0 && key[0] == idAsIs:
		return string(key[1:]), true
	case len(key) == 17 && key[0] == idUUID:
		return string(uuidText([16]byte(key[1:]))), true
	case len(key) == 33 && key[0] == idHashed && long != nil:
		return string(long), true
	default:
		return "", false
	}
}

func uuidOf(id []byte) (u [16]byte, ok bool) {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' {
		return u, false
	}
	var digits [32]byte
	copy(digits[:], id[:8])
	copy(digits[8:], id[9:13])
	copy(digits[12:], id[14:18])
	copy(digits[16:], id[19:23])
	copy(digits[20:], id[24:])
	if _, err := hex.Decode(u[:], digits[:]); err != nil {
		return u, false
	}
	return u, !bytes.ContainsAny(id, "ABCDEF") // hex.Decode also accepts upper case
}

func uuidText(u [16]byte) []byte {
	text := make([]byte, 36)
	hex.Encode(text, u[:4])
	hex.Encode(text[9:], u[4:6])
	hex.Encode(text[14:], u[6:8])
	hex.Encode(text[19:], u[8:10])
	hex.Encode(text[24:], u[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return text
}
