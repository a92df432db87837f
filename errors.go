package semel

import "errors"

// Errors that callers ask for with errors.Is. Each says what has happened by
// the time it is returned.
var (
	// ErrChanged: someone changed the row since it was read; nothing was done.
	ErrChanged = errors.New("semel: the row was changed by someone else; look again")
	// ErrConflict: another content of this identity is applied; nothing was
	// done, because a retry would double the effect.
	ErrConflict = errors.New("semel: another content of this identity is applied")
	// ErrState: the row's state does not allow the act; nothing was done.
	ErrState = errors.New("semel: the row's state does not allow this")
	// ErrHalted: a message ended by halt; it is unsettled and comes again.
	ErrHalted = errors.New("semel: halted by a message")
	// ErrUnfinished: a run ended idle, and lanes stand still with messages that were
	// not read, or that a newer release marked; they are unsettled.
	ErrUnfinished = errors.New("semel: ended idle, and lanes stand still")
	// ErrOld: the message is older than what is kept, and nothing is kept of it, so that
	// it may have taken effect before. What was written in the caller's transaction must
	// be rolled back.
	ErrOld = errors.New("semel: it is older than what is kept, and may have taken effect before; roll back, and set it aside")
	// ErrBehind: the store is behind the broker's offset: it was restored, or failed over
	// to a server that lacks its last commits. Effects are missing, and what they are of
	// does not come again by itself; nothing more is read. The error around it has the
	// figures and says what to do.
	ErrBehind = errors.New("semel: the store is behind the broker")
	// ErrSchema: the store's schema is missing, older or newer; the error
	// around it says what to do.
	ErrSchema = errors.New("semel: the schema does not fit")
	// ErrUnsupported: the store or source lacks an ability that is needed.
	ErrUnsupported = errors.New("semel: not supported")
	// ErrIdentityChanged: the store has recorded that the consumer's identities are found
	// in another way, and nothing names that as the former one; nothing was done.
	ErrIdentityChanged = errors.New("semel: the identity is found in another way than before")
	// ErrForeignOwner: another owner has the consumer's name; nothing was done.
	ErrForeignOwner = errors.New("semel: the consumer's name belongs to another")
	// ErrClosed: the consumer is stopped; nothing was done.
	ErrClosed = errors.New("semel: closed")
)
