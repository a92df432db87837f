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

// What hashes are of; another encoding gets another name.
const (
	lineKind = "audit line 1"
	headKind = "audit head 1"
)

// hasher begins a hash, under the key if there is one.
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

// Hash is the hash of a line under the key; of a line that has none it is under none.
// Numbers and times, which are microseconds since 1970, are eight bytes, the highest first,
// and everything has its length before it, so that no two lines have the same encoding.
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

// Next is the line with which an act is sealed at the end of a chain.
func Next(key []byte, end admin.SealHead, act store.Act, at time.Time) admin.Seal {
	s := admin.Seal{Sequence: end.Sequence + 1, Act: act, At: at, Keyed: len(key) > 0, Previous: end.Hash}
	s.Hash = Hash(key, s)
	return s
}

// HeadOf is the end of a chain whose last line is this.
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

// MaySeal says why lines cannot be sealed at the end of a chain, if they cannot: a chain
// under a key does not go on without one, or whoever can write the table could go on with it.
// It neither begins nor goes on from an end that nobody with the key wrote where o says Continue,
// or whoever can remove lines could have others signed in their place.
func MaySeal(o *admin.Sealing, end admin.SealHead) error {
	const remedy = "semel audit seal --begin seals from here on, if you know why: %w"
	switch {
	case end.Keyed && len(o.Key) == 0:
		return fmt.Errorf("the acts are sealed under a key, and this process has none: give it the audit.key of the others: %w", semel.ErrState)
	case len(o.Key) == 0 || !o.Continue:
	case end.Sequence == 0:
		return fmt.Errorf("no chain of acts has begun: if one had, somebody removed it; "+remedy, semel.ErrState)
	case end.Keyed && end.Proof != proof(o.Key, end):
		return fmt.Errorf("the end of the chain of acts, line %d, was not written with this process's audit.key: either the key is another one, or somebody cut lines off; "+remedy, end.Sequence, semel.ErrState)
	}
	return nil
}
