package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/digest"
	"github.com/semel-go/semel/store"
)

// The names that mark the kinds of hashed data. If the encoding of a kind changes, use a new name.
const (
	lineKind = "audit line 1"
	headKind = "audit head 1"
)

// hasher begins a hash. If key is not empty, the hash is an HMAC.
func hasher(key []byte, kind string) hash.Hash {
	h := sha256.New()
	if len(key) > 0 {
		h = hmac.New(sha256.New, key)
	}
	digest.Begin(h, kind)
	return h
}

func number(h hash.Hash, n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	digest.Part(h, b[:])
}

func text(h hash.Hash, s string) { digest.Part(h, []byte(s)) }

func sum(h hash.Hash) (s admin.SealHash) {
	h.Sum(s[:0])
	return s
}

// Hash returns the hash of an audit line. If the line is keyed, the hash is computed with key. Numbers and times
// (microseconds since 1970) are encoded as eight bytes, big-endian. Every part is preceded by its length, so that
// different lines have different encodings.
func Hash(key []byte, s admin.Seal) admin.SealHash {
	if !s.Keyed {
		key = nil
	}
	h := hasher(key, lineKind)
	digest.Part(h, s.Previous[:])
	number(h, s.Sequence)
	number(h, s.At.UnixMicro())
	number(h, s.Act.Number)
	number(h, s.Act.Row)
	number(h, s.Act.At.UnixMicro())
	text(h, s.Act.Verb)
	text(h, s.Act.Who)
	text(h, s.Act.Why)
	text(h, s.Act.Result)
	return sum(h)
}

// Next returns the next line of the audit chain: it contains the audit record act, and follows the line that the
// parameter end describes. If key is not empty, the line is keyed.
func Next(key []byte, end admin.SealHead, act store.Act, at time.Time) admin.Seal {
	s := admin.Seal{Sequence: end.Sequence + 1, Act: act, At: at, Keyed: len(key) > 0, Previous: end.Hash}
	s.Hash = Hash(key, s)
	return s
}

// HeadOf returns the SealHead of an audit chain with the given last line.
func HeadOf(key []byte, last admin.Seal) admin.SealHead {
	end := admin.SealHead{Sequence: last.Sequence, Keyed: last.Keyed, Hash: last.Hash}
	if last.Keyed {
		end.Proof = proof(key, end)
	}
	return end
}

func proof(key []byte, end admin.SealHead) admin.SealHash {
	h := hasher(key, headKind)
	number(h, end.Sequence)
	digest.Part(h, end.Hash[:])
	return sum(h)
}

// MaySeal returns an error if no line may be added after the line that the parameter end describes. To extend a keyed
// chain, the key is needed, so that nobody who can only write the table can extend the chain. With o.Continue and a
// key, the chain must have an end with a valid proof, so that a person who deletes lines cannot make Semel sign new
// lines in their place.
func MaySeal(o *admin.Sealing, end admin.SealHead) error {
	const remedy = "semel audit seal --begin starts sealing here; use it only if you know the cause: %w"
	switch {
	case end.Keyed && len(o.Key) == 0:
		return fmt.Errorf("the changes are sealed under a key, and this process has none: configure the audit.key of the other processes: %w", semel.ErrState)
	case len(o.Key) == 0 || !o.Continue:
	case end.Sequence == 0:
		return fmt.Errorf("there is no chain of changes: either none was ever written, or it was deleted; "+remedy, semel.ErrState)
	case end.Keyed && end.Proof != proof(o.Key, end):
		return fmt.Errorf("the end of the chain of changes, line %d, was not written with this process's audit.key: either the key differs, or lines were cut off; "+remedy, end.Sequence, semel.ErrState)
	}
	return nil
}
