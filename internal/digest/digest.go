// Package digest writes what is hashed in a form in which neither kinds nor
// parts can run together.
package digest

import (
	"encoding/binary"
	"hash"
)

// Begin begins a hash of a kind of its own: hashes of different kinds
// are never equal.
func Begin(h hash.Hash, name string) { _, _ = h.Write(Domain(name)) }

// Domain is what begins a hash of the kind of this name.
func Domain(name string) []byte {
	name = "semel/" + name
	return append(binary.AppendUvarint(nil, uint64(len(name))), name...)
}

// Part writes b with its length before it, so that parts cannot run
// together. A hash never returns an error.
func Part(h hash.Hash, b []byte) {
	var length [binary.MaxVarintLen64]byte
	_, _ = h.Write(length[:binary.PutUvarint(length[:], uint64(len(b)))])
	_, _ = h.Write(b)
}

// AppendPart appends b with its length before it, as Part writes it.
func AppendPart(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}
