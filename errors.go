package semel

import "errors"

// These errors are for errors.Is. Each comment says what has happened when the error is returned.
var (
	// ErrChanged: another process or person changed the row since it was read; nothing was done.
	ErrChanged = errors.New("semel: the row was changed by someone else; look again")
	// ErrConflict: a message with the same identity and other content was applied; nothing was done. A retry would
	// double the effect.
	ErrConflict = errors.New("semel: another content of this identity is applied")
	// ErrState: the state of the row does not allow the action; nothing was done.
	ErrState = errors.New("semel: the row's state does not allow this")
	// ErrHalted: a message halted the consumer. The message is unsettled and will be delivered again.
	ErrHalted = errors.New("semel: halted by a message")
	// ErrUnfinished: the run ended because it was idle, but lanes have unsettled messages that could not be read
	// or whose markers were written by a newer release.
	ErrUnfinished = errors.New("semel: ended idle, and lanes stand still")
	// ErrOld: the message is older than the retention of markers and has no marker, so it may have been applied
	// before. The caller must roll back its transaction.
	ErrOld = errors.New("semel: it is older than what is kept, and may have taken effect before; roll back, and set it aside")
	// ErrBehind: the store is behind the offset in the broker, because the store was restored from a backup or
	// failed over to a server that lacks its last commits. Effects are missing, and the broker will not deliver
	// their messages again. The consumer reads no more. The error that wraps ErrBehind has the figures and says
	// what to do.
	ErrBehind = errors.New("semel: the store is behind the broker")
	// ErrSchema: the schema of the store is missing, older or newer. The error that wraps ErrSchema says what to
	// do.
	ErrSchema = errors.New("semel: the schema does not fit")
	// ErrUnsupported: the store or source lacks a required feature.
	ErrUnsupported = errors.New("semel: not supported")
	// ErrIdentityChanged: the store has recorded another definition of the consumer's identities, and the
	// configuration does not name that one as the previous one. Nothing was done.
	ErrIdentityChanged = errors.New("semel: the identity is found in another way than before")
	// ErrForeignOwner: the consumer's name belongs to another owner; nothing was done.
	ErrForeignOwner = errors.New("semel: the consumer's name belongs to another")
	// ErrClosed: the consumer was stopped; nothing was done.
	ErrClosed = errors.New("semel: closed")
)
