// Package digest writes values to a hash so that hashes of different kinds, or of different parts, are never equal.
package digest

import (
	"encoding/binary"
	"hash"
)

// Begin begins a hash with the name of its kind, so that hashes of different kinds are never equal.
func Begin(h hash.Hash, name string) { _, _ = h.Write(Domain(name)) }

// Domain returns the prefix for a hash. The parameter name is the kind of the hash.
func Domain(name string) []byte {
	name = "semel/" + name
	return append(binary.AppendUvarint(nil, uint64(len(name))), name...)
}

// Part writes the length of b and then b. Because of the lengths, two different sequences of parts are never written as
// the same bytes. A hash never returns an error.
func Part(h hash.Hash, b []byte) {
	var length [binary.MaxVarintLen64]byte
	_, _ = h.Write(length[:binary.PutUvarint(length[:], uint64(len(b)))])
	_, _ = h.Write(b)
}

// AppendPart appends the bytes that Part writes for b to dst.
func AppendPart(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}
