package admin

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// StoredEdit is an edit of a row's body by an operator.
type StoredEdit struct {
	// Number is 1 for the first edit of a row, 2 for the second and so on.
	Number int
	// Who is the user who made the edit. At is the time of the edit by the store's clock.
	Who string
	At  time.Time
	// Was is the body before the edit. Was is nil if bodies were not requested, and if the old body was
	// removed together with the row's body (Removed).
	Was     []byte
	Removed bool
	// Before and After are the SHA-256 hashes of the body before and after the edit. SizeBefore and SizeAfter are the
	// lengths of the two bodies.
	Before, After         [sha256.Size]byte
	SizeBefore, SizeAfter int
}

// Editor is implemented by an Inbox in which operators can replace the body of a parked or dead-lettered row. When the
// row is retried, the handler gets the new body. Apart from the type, an edit does not change other fields of the row,
// such as the fingerprint of the producer's message. So copies of the producer's message are duplicates before and
// after the retry. A message with the same identity and any other content is a conflict, even if its content is equal
// to the edited body.
type Editor interface {
	store.Inbox
	// Edit replaces the body of a row and saves the old body. The parameter kind is the type of the message with the
	// new body; if kind is empty, the row keeps its type. In the same transaction, Edit writes an audit record whose
	// Why contains the hashes of both bodies, and both types if the type changes (EditAct). semel.ErrChanged means that
	// the row has another revision. semel.ErrConflict means that a message with the identity was applied or waits; for
	// a conflict, that the message with the first content was applied or waits. semel.ErrState means that MayEdit
	// rejects the edit. If Edit returns an error of these kinds, the row was not changed.
	Edit(ctx context.Context, number, revision int64, body []byte, kind string, a store.Act) error
	// Edits returns the edits of a row, oldest first, with Was if bodies is set.
	Edits(ctx context.Context, number int64, bodies bool) ([]StoredEdit, error)
}

// MaxEdit is the maximum size of an edited body in bytes.
const MaxEdit = 16 << 20

// MayEdit returns nil if an edit may replace the body of the row by the parameter body. If the body may not be
// replaced, MayEdit returns an error that wraps semel.ErrState and contains the cause.
func MayEdit(r *store.StoredRow, body []byte) error {
	why := ""
	switch {
	case r.State != store.StateParked && r.State != store.StateDeadLettered:
		why = fmt.Sprintf("is %s, and only parked and dead messages can be edited", StateOf(r.State))
	case r.Surrogate:
		why = "has no identity and is never processed; have the message sent again with an identity"
	case len(r.Steps) > 0:
		why = "has steps that took effect with its present body"
	case r.UnknownOutcome():
		why = "has a call with an unknown outcome, so its body may have taken effect; find out the outcome and resolve the row first"
	case r.BodyRemoved:
		why = "no longer has a body"
	case len(body) > MaxEdit:
		why = fmt.Sprintf("cannot have a body of %d bytes; at most %d", len(body), MaxEdit)
	default:
		return nil
	}
	return &refusal{fmt.Sprintf("row %d %s", r.Number, why), semel.ErrState}
}

// Change is what an edit changes.
type Change struct {
	// Before and After are the bodies before and after the edit.
	Before, After []byte
	// TypeBefore and TypeAfter are the types before and after the edit. If they are equal, the edit keeps the type.
	TypeBefore, TypeAfter string
	// Secret is the key of the hashes in the audit record, so that a short body cannot be guessed from its hash. If
	// Secret is nil, the hashes have no key.
	Secret []byte
}

// EditAct returns an audit record whose Why contains, after the reason, the hashes of both bodies. If the edit changes
// the type, both types follow.
func EditAct(a store.Act, c Change) store.Act {
	name, h := "sha256", sha256.New()
	if c.Secret != nil {
		name, h = "hmac-sha256", hmac.New(sha256.New, c.Secret)
	}
	sum := func(body []byte) []byte {
		h.Reset()
		_, _ = h.Write(body) // a hash never returns an error
		return h.Sum(nil)
	}
	a.Why = fmt.Sprintf("%s; %s %x (%d bytes) to %x (%d bytes)", a.Why, name, sum(c.Before), len(c.Before), sum(c.After), len(c.After))
	if c.TypeBefore != c.TypeAfter {
		a.Why += fmt.Sprintf("; type %q to %q", c.TypeBefore, c.TypeAfter)
	}
	return a
}
