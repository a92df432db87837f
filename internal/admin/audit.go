package admin

import (
	"context"
	"time"

	"github.com/semel-go/semel/store"
)

// SealHash is the hash of a Seal: SHA-256, or HMAC-SHA-256 with a key.
type SealHash [32]byte

// Seal is a line of the audit chain: a copy of an audit record (store.Act), and a hash of the record together
// with the hash of the previous line. docs/operate/audit.md specifies the hash.
type Seal struct {
	// Sequence is the position of the line: 1, 2 and so on, without gaps.
	Sequence int64
	// Act is the sealed audit record. Act.Number is unique in the chain, and Act.At has microsecond precision.
	Act store.Act
	// At is the time of sealing, by the store's clock, with microsecond precision.
	At time.Time
	// Keyed reports that Hash was computed with a key.
	Keyed bool
	// Previous is the Hash of the previous line; zero in the first line.
	Previous, Hash SealHash
}

// SealHead describes the last line of a chain of seals. The zero value describes an empty chain.
type SealHead struct {
	// Sequence, Keyed and Hash are copied from the last line.
	Sequence int64
	Keyed    bool
	Hash     SealHash
	// Proof is a hash of the other fields with the key, if the line is keyed. Nobody can forge Proof without
	// the key.
	Proof SealHash
}

// Sealing is the argument of Auditor.Seal.
type Sealing struct {
	// Key is the key of the hashes; empty means unkeyed hashes.
	Key []byte
	// Continue, with a key, seals only if the chain has begun and its last line was written with this key or
	// without a key. Otherwise Seal returns semel.ErrState, so that a database user who has removed lines
	// cannot start a new chain. Without Continue, Seal begins a chain if there is none. If there is a chain,
	// Seal appends to it and does not check its last line.
	Continue bool
	// Most is the maximum number of audit records to seal; 0 means 1,000.
	Most int
	// Whole makes Seal search the whole table for unsealed audit records. Without Whole, Seal only searches
	// the records whose number is at least the lowest number in the last SealWindow lines. A transaction may
	// take so long that SealWindow other records are sealed before its commit; its record is found only with
	// Whole.
	Whole bool
	// At, if not nil, is a function of a test. It is called between the steps of the transaction, with the
	// number of written lines.
	At func(lines int)
}

// SealWindow is a number of last lines. The lowest number in these lines limits the search for unsealed audit
// records. With several lines, a single wrong number does not move the limit.
const SealWindow = 1000

// Sealed is the result of Auditor.Seal.
type Sealed struct {
	// Lines is the number of sealed audit records. If Lines is less than Sealing.Most, all records are sealed.
	Lines int
	// Elsewhere reports that another process is sealing. Nothing was sealed.
	Elsewhere bool
}

// AuditedAct is an audit record with the sequence of its line in the chain. Sequence is 0 if the record is
// not sealed.
type AuditedAct struct {
	store.Act
	Sequence int64
}

// AuditedSeal is a line of the chain. Now is the audit record that has this number now, or nil if the record
// no longer exists.
type AuditedSeal struct {
	Seal
	Now *store.Act
}

// Auditor is implemented by an Inbox that seals audit records into a chain. The chain shows whether lines
// were changed, removed, reordered or inserted. Audit records are committed without the chain, so that no
// operator and no handler waits for the chain. Shortly afterwards Seal seals each record once, in the order
// of the numbers that are visible then.
type Auditor interface {
	store.Inbox
	// Seal seals some audit records in its own transaction. If several processes call Seal, one of them seals
	// and the others return at once. semel.ErrState means that the chain has keyed lines and no key was
	// given, or that the chain cannot be continued (Sealing.Continue); nothing is changed.
	Seal(ctx context.Context, o Sealing) (Sealed, error)
	// SealHead returns the head of the chain: a description of its last line.
	SealHead(ctx context.Context) (SealHead, error)
	// Seals returns the lines after this sequence in order. A limit of 0 means 1,000. To read all lines,
	// including lines with forged numbers, start with math.MinInt64. The same applies to AuditedActs.
	Seals(ctx context.Context, after int64, limit int) ([]AuditedSeal, error)
	// AuditedActs returns the audit records after this number in order. A limit of 0 means 1,000.
	AuditedActs(ctx context.Context, after int64, limit int) ([]AuditedAct, error)
}
