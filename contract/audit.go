package contract

import (
	"context"
	"time"
)

// SealHash is what a Seal is recognised by: SHA-256, or HMAC-SHA-256 under a key.
type SealHash [32]byte

// Seal is a line of the chain into which acts are sealed: an act as it was, and a hash of
// it with the hash of the line before. What is hashed, and how, is in docs/audit.md.
type Seal struct {
	// Sequence is the line's place: 1 and up, without holes.
	Sequence int64
	// Act is what was sealed; its Number is unique among the lines. At is exact to the
	// microsecond.
	Act Act
	// At is when it was sealed, by the store's clock, exact to the microsecond.
	At time.Time
	// Keyed: Hash is under a key.
	Keyed bool
	// Previous is Hash of the line before; zero in the first.
	Previous, Hash SealHash
}

// SealHead is the end of a chain; the zero value is that of an empty one.
type SealHead struct {
	// Sequence, Keyed and Hash are those of the last line.
	Sequence int64
	Keyed    bool
	Hash     SealHash
	// Proof is a hash of the others under the key, if the line has one: who has no key
	// cannot make that of another end.
	Proof SealHash
}

// Sealing says what one call of Seal does.
type Sealing struct {
	// Key is what lines are hashed under; empty: under none.
	Key []byte
	// Continue, with a key, seals only if the chain has begun and its last line was written under
	// this key or under none. Otherwise Seal returns semel.ErrState, so that a database user who
	// removed lines cannot have the chain made anew. Without Continue, Seal begins a chain if there
	// is none, and otherwise appends to it, whatever its last line is.
	Continue bool
	// Most is how many acts are sealed at most; 0 means 1,000.
	Most int
	// Whole looks for acts among all, which reads the whole table; otherwise among those
	// with a number that is no lower than the lowest of those that SealWindow lines sealed
	// last. An act whose transaction took so long that this many others were sealed before
	// it committed is found by a whole look alone.
	Whole bool
	// At, if not nil, is called between the steps of the sealing's transaction, for tests,
	// with how many of its lines are written.
	At func(lines int)
}

// SealWindow is how many lines say from which number on an act is looked for: one foreign
// number among them does not move that.
const SealWindow = 1000

// Sealed is what became of one call of Seal.
type Sealed struct {
	// Lines are how many acts were sealed; fewer than the most: no more are to be.
	Lines int
	// Elsewhere: another process seals now; nothing was done.
	Elsewhere bool
}

// AuditedAct is an act with the sequence of its line; 0: it is not sealed.
type AuditedAct struct {
	Act
	Sequence int64
}

// AuditedSeal is a line with its act as it stands now; nil: there is none of its number.
type AuditedSeal struct {
	Seal
	Now *Act
}

// Auditor is an optional ability of an Inbox: to seal acts into a chain, in which a line
// that was changed, removed, reordered or inserted is found. Acts are written without it, so
// that no act and no handler waits for a chain; what is committed and not sealed is sealed a
// moment later, each act once, in the order of their numbers as far as they are visible then.
type Auditor interface {
	Inbox
	// Seal seals some acts, in a transaction of its own. Of several callers one works and
	// the others return at once. semel.ErrState: the chain has lines under a key, and no
	// key was given, or it may not be continued (Sealing.Continue); nothing was done.
	Seal(ctx context.Context, o Sealing) (Sealed, error)
	// SealHead returns the end of the chain.
	SealHead(ctx context.Context) (SealHead, error)
	// Seals returns lines behind the one of this sequence, in their order. A limit of 0
	// means 1,000. Who reads all of what somebody may have written begins with math.MinInt64,
	// here and below.
	Seals(ctx context.Context, after int64, limit int) ([]AuditedSeal, error)
	// AuditedActs returns acts behind the one of this number, by number. A limit of 0 means
	// 1,000.
	AuditedActs(ctx context.Context, after int64, limit int) ([]AuditedAct, error)
}
