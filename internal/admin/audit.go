package admin

import (
	"context"
	"time"

	"github.com/semel-go/semel/store"
)

// SealHash is the hash of a Seal: SHA-256, or HMAC-SHA-256 with a key.
type SealHash [32]byte

// Seal is a line of the audit chain: a copy of an act, and a hash of the act together with the hash of the
// previous line. docs/operate/audit.md specifies the hash.
type Seal struct {
	// Sequence is the position of the line: 1, 2 and so on, without gaps.
	Sequence int64
	// Act is the sealed act. Its Number is unique in the chain, and its At has microsecond precision.
	Act store.Act
	// At is the time of sealing, by the store's clock, with microsecond precision.
	At time.Time
	// Keyed reports that Hash was made with a key.
	Keyed bool
	// Previous is the Hash of the previous line; zero in the first line.
	Previous, Hash SealHash
}

// SealHead is the end of a chain. The zero value is the end of an empty chain.
type SealHead struct {
	// Sequence, Keyed and Hash are those of the last line.
	Sequence int64
	Keyed    bool
	Hash     SealHash
	// Proof is a hash of the other fields with the key, if the line is keyed. It cannot be forged without
	// the key.
	Proof SealHash
}

// Sealing is the argument of Auditor.Seal.
type Sealing struct {
	// Key is the key of the hashes; empty means unkeyed hashes.
	Key []byte
	// Continue, with a key, seals only if the chain has begun and its last line was written under
	// this key or under none. Otherwise Seal returns semel.ErrState, so that a database user who
	// removed lines cannot have the chain made anew. Without Continue, Seal begins a chain if there
	// is none, and otherwise appends to it, whatever its last line is.
	Continue bool
	// Most is the maximum number of acts to seal; 0 means 1,000.
	Most int
	// Whole searches the whole table for unsealed acts. Otherwise only acts are searched whose number is
	// not lower than the lowest number in the last SealWindow lines. An act whose transaction took so
	// long that SealWindow other acts were sealed before its commit is found only with Whole.
	Whole bool
	// At, if not nil, is called by tests between the steps of the transaction, with the number of written
	// lines.
	At func(lines int)
}

// SealWindow is the number of last lines whose lowest number bounds the search for unsealed acts, so that a
// single wrong number does not move the bound.
const SealWindow = 1000

// Sealed is the result of Auditor.Seal.
type Sealed struct {
	// Lines is the number of sealed acts. If it is less than Sealing.Most, none are left.
	Lines int
	// Elsewhere reports that another process is sealing. Nothing was done.
	Elsewhere bool
}

// AuditedAct is an act with the sequence of its line; 0 if it is not sealed.
type AuditedAct struct {
	store.Act
	Sequence int64
}

// AuditedSeal is a line with the current act of its number; Now is nil if the act does not exist.
type AuditedSeal struct {
	Seal
	Now *store.Act
}

// Auditor is implemented by an Inbox that seals acts into a chain. A line of the chain that was changed,
// removed, reordered or inserted can be detected. Acts are committed without the chain, so that no act and
// no handler waits for it, and are sealed shortly afterwards: each act once, in the order of the numbers that
// are visible then.
type Auditor interface {
	store.Inbox
	// Seal seals some acts in its own transaction. If several processes call it, one of them works and
	// the others return at once. semel.ErrState: the chain has keyed lines and no key was given, or the
	// chain cannot be continued (Sealing.Continue); nothing is changed.
	Seal(ctx context.Context, o Sealing) (Sealed, error)
	// SealHead returns the end of the chain.
	SealHead(ctx context.Context) (SealHead, error)
	// Seals returns the lines after this sequence in order. A limit of 0 means 1,000. To read every line
	// or act, also with forged numbers, start with math.MinInt64, here and in AuditedActs.
	Seals(ctx context.Context, after int64, limit int) ([]AuditedSeal, error)
	// AuditedActs returns the acts after this number in order. A limit of 0 means 1,000.
	AuditedActs(ctx context.Context, after int64, limit int) ([]AuditedAct, error)
}
