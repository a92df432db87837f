package admin

import (
	"context"
	"time"

	"github.com/semel-go/semel/store"
)

// SealHash is the hash of a Seal: SHA-256, or HMAC-SHA-256 with a key.
type SealHash [32]byte

// Seal is one line of the audit chain. A line contains a copy of an audit record (store.Act), and a hash of the record
// and of the previous line's hash. docs/operate/audit.md specifies the hash.
type Seal struct {
	// Sequence is the position of the line in the audit chain: 1, 2 and so on, without gaps.
	Sequence int64
	// Act is the copy of the audit record. Act.Number is unique in the chain, and Act.At has microsecond precision.
	Act store.Act
	// At is the time when the line was added to the chain, by the store's clock, with microsecond precision.
	At time.Time
	// Keyed reports that Hash was computed with a key.
	Keyed bool
	// Previous is the Hash of the previous line of the chain; zero in the first line.
	Previous, Hash SealHash
}

// SealHead describes the last line of an audit chain. The zero SealHead describes an empty chain.
type SealHead struct {
	// Sequence, Keyed and Hash are copied from the last line of the chain.
	Sequence int64
	Keyed    bool
	Hash     SealHash
	// Proof is a hash of the other fields with the key, if the last line is keyed. Without the key, Proof cannot be
	// forged.
	Proof SealHash
}

// Sealing is the argument of Auditor.Seal.
type Sealing struct {
	// Key is the key of the hashes; empty means unkeyed hashes.
	Key []byte
	// If Continue is set and there is a key, Seal adds lines only to a chain that has begun, and whose last line was
	// written with the same key or without a key. For any other chain Seal returns semel.ErrState, so that a database
	// user who has removed lines cannot start a new chain. Without Continue, Seal begins a chain if there is none, and
	// appends to an existing chain without a check of its last line.
	Continue bool
	// Most is the maximum number of audit records to add to the chain; 0 means 1,000.
	Most int
	// If Whole is set, Seal searches the whole table for audit records that are not in the chain. Without Whole, Seal
	// only searches the records whose number is at least the lowest number in the last SealWindow lines. A transaction
	// may take so long that SealWindow other records are added before its commit; the audit record of that transaction
	// is found only with Whole.
	Whole bool
	// At, if not nil, is a function of a test that is called between the steps of the transaction, with the number of
	// written lines.
	At func(lines int)
}

// Seal searches for new audit records from the lowest record number in the last SealWindow lines of the chain. The
// window has many lines, so that a single wrong number does not move the lowest number.
const SealWindow = 1000

// Sealed is the result of Auditor.Seal.
type Sealed struct {
	// Lines is the number of audit records that were added to the chain. If Lines is less than Sealing.Most, all
	// records are in the chain.
	Lines int
	// Elsewhere reports that another process is adding lines to the chain, so this call added none.
	Elsewhere bool
}

// AuditedAct is an audit record with the sequence of its line in the audit chain. Sequence is 0 if the record is not in
// the chain.
type AuditedAct struct {
	store.Act
	Sequence int64
}

// AuditedSeal is a line of the audit chain. Now is the current audit record with the number of the line's copy, or nil
// if the record no longer exists.
type AuditedSeal struct {
	Seal
	Now *store.Act
}

// Auditor is implemented by an Inbox that copies audit records into a chain of hashes. The chain shows whether audit
// records were changed, removed, reordered or inserted. Audit records are committed without the chain, so that no
// operator and no handler waits for the chain. Shortly afterwards, Seal adds each record to the chain once, in the
// order of the visible record numbers.
type Auditor interface {
	store.Inbox
	// Seal adds some audit records to the chain, in its own transaction. If several processes call Seal, one process
	// adds records and the calls of the other processes return at once. semel.ErrState means that the chain has keyed
	// lines and no key was given, or that the chain cannot be continued (Sealing.Continue); if Seal returns
	// semel.ErrState, nothing was changed.
	Seal(ctx context.Context, o Sealing) (Sealed, error)
	// SealHead returns a description of the chain's last line.
	SealHead(ctx context.Context) (SealHead, error)
	// Seals returns, in ascending order, the lines of the audit chain with a sequence greater than after. A limit of 0
	// means 1,000. To read all lines, including lines with forged numbers, start with math.MinInt64, also for
	// AuditedActs.
	Seals(ctx context.Context, after int64, limit int) ([]AuditedSeal, error)
	// AuditedActs returns, in ascending order, the audit records with a number greater than after. A limit of 0 means
	// 1,000.
	AuditedActs(ctx context.Context, after int64, limit int) ([]AuditedAct, error)
}
