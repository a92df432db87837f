package contract

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/semel-go/semel"
)

// StoredEdit is one time that a person gave a row another body.
type StoredEdit struct {
	// Number is 1 of a row's first edit, and counted from there.
	Number int
	// Who edited it, At by the store's clock.
	Who string
	At  time.Time
	// Was is the body before it; nil unless it was asked for, and where it was removed with
	// the row's own (Removed).
	Was     []byte
	Removed bool
	// Before and After are SHA-256 of the bodies, which had and have so many bytes.
	Before, After         [sha256.Size]byte
	SizeBefore, SizeAfter int
}

// Editor is an optional ability of an Inbox: to give a row that was set aside another body,
// which its handler gets when it is retried. Everything else of the row stays as it is, also
// the fingerprint, which is that of what the producer sent: copies of that are duplicates,
// before the row is retried and after; and what is sent under the identity with another
// content, be it that of the edit, is a conflict.
type Editor interface {
	Inbox
	// Edit gives a row another body and keeps the one it had, in the transaction of the act,
	// which says with its own reason the hashes of both (EditAct). Nothing is changed with
	// semel.ErrChanged: the row has another revision; semel.ErrConflict: its identity, or for
	// a conflict the first content of it, has taken effect, or waits; semel.ErrState: MayEdit
	// refuses it.
	Edit(ctx context.Context, number, revision int64, body []byte, a Act) error
	// Edits returns what was edited of a row, the first first; bodies asks for Was, too.
	Edits(ctx context.Context, number int64, bodies bool) ([]StoredEdit, error)
}

// MaxEdit is how many bytes a body has at most that a person gives.
const MaxEdit = 16 << 20

// Edited is what of a row says whether its body may be replaced.
type Edited struct {
	State RowState
	// Surrogate, UnknownOutcome and BodyRemoved are as in StoredRow; Stepped says that steps
	// of it have taken effect.
	Surrogate, UnknownOutcome, BodyRemoved, Stepped bool
}

// MayEdit is nil if a row may get another body; otherwise an error that wraps semel.ErrState and
// says why not.
func MayEdit(number int64, e Edited, body []byte) error {
	why := ""
	switch {
	case e.State != StateParked && e.State != StateDeadLettered:
		why = fmt.Sprintf("is %s, and only what was set aside may be edited", e.State)
	case e.Surrogate:
		why = "has no identity, and is never run; have it sent again with one"
	case e.Stepped:
		why = "has steps that took effect with the body that it has"
	case e.UnknownOutcome:
		why = "had a call of which nobody knows what became, so its body may have taken effect; find out and resolve it first"
	case e.BodyRemoved:
		why = "has no body any more"
	case len(body) > MaxEdit:
		why = fmt.Sprintf("cannot have a body of %d bytes; at most %d", len(body), MaxEdit)
	default:
		return nil
	}
	return fmt.Errorf("row %d %s: %w", number, why, semel.ErrState)
}

// EditAct is an act with the hashes of what was edited. With a secret, the hashes are keyed with it, so
// that nobody without it can guess a short body.
func EditAct(a Act, before, after, secret []byte) Act {
	name, h := "sha256", sha256.New()
	if secret != nil {
		name, h = "hmac-sha256", hmac.New(sha256.New, secret)
	}
	sum := func(body []byte) []byte {
		h.Reset()
		_, _ = h.Write(body) // a hash never returns an error
		return h.Sum(nil)
	}
	a.Why = fmt.Sprintf("%s %x (%d bytes) to %x (%d bytes): %s", name, sum(before), len(before), sum(after), len(after), a.Why)
	return a
}
