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
	// Keyed reports that Hash was made with a key.
	Keyed bool
	// Previous is the Hash of the previous line; zero in the first line.
	Previous, Hash SealHash
}

// SealHead describes the last line of a chain of seals. The zero value belongs to an empty chain.
type SealHead struct {
	// Sequence, Keyed and Hash are those of the last line.
	Sequence int64
	Keyed    bool
	Hash     SealHash
	// Proof is a hash of the other fields with the key, if the line is keyed. Proof cannot be forged
	// without the key.
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
	// Most is the maximum number of audit records to seal; 0 means 1,000.
	Most int
	// Whole searches the whole table for unsealed audit records. Otherwise Seal searches only the records
	// whose number is not lower than the lowest number in the last SealWindow lines. A record whose
	// transaction took so long that SealWindow other records were sealed before its commit is found only
	// with Whole.
	Whole bool
	// At, if not nil, is called by tests between the steps of the transaction, with the number of written
	// lines.
	At func(lines int)
}

// SealWindow is the number of last lines whose lowest number bounds the search for unsealed audit records, so
// that a single wrong number does not move the bound.
const SealWindow = 1000

// Sealed is the result of Auditor.Seal.
type Sealed struct {
	// Lines is the number of sealed audit records. If Lines is less than Sealing.Most, all records are sealed.
	Lines int
	// Elsewhere reports that another process is sealing. Nothing was done.
	Elsewhere bool
}

// AuditedAct is an audit record with the sequence of its line in the chain; 0 if the record is not sealed.
type AuditedAct struct {
	store.Act
	Sequence int64
}

// AuditedSeal is a line of the chain. Now is the audit record that has this number today; nil if the record does
// not exist any more.
type AuditedSeal struct {
	Seal
	Now *store.Act
}

// Auditor is implemented by an Inbox that seals audit records into a chain, so that changed, removed, reordered
// and inserted lines can be detected. Audit records are committed without the chain, so that no operator and no
// handler waits for the chain. Shortly afterwards Seal seals each record once, in the order of the numbers that
// are visible then.
type Auditor interface {
	store.Inbox
	// Seal seals some audit records in its own transaction. If several processes call Seal, one of them works
	// and the others return at once. semel.ErrState: the chain has keyed lines and no key was given, or the
	// chain cannot be continued (Sealing.Continue); nothing is changed.
	Seal(ctx context.Context, o Sealing) (Sealed, error)
	// SealHead returns the head of the chain: a description of its last line.
	SealHead(ctx context.Context) (SealHead, error)
	// Seals returns the lines after this sequence in order. A limit of 0 means 1,000. To read all lines, also
	// lines with forged numbers, start with math.MinInt64. The same applies to AuditedActs.
	Seals(ctx context.Context, after int64, limit int) ([]AuditedSeal, error)
	// AuditedActs returns the audit records after this number in order. A limit of 0 means 1,000.
	AuditedActs(ctx context.Context, after int64, limit int) ([]AuditedAct, error)
}
