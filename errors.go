package semel

import "errors"

// Errors for errors.Is. The comment of each error says what has happened when a function returns the error.
var (
	// ErrChanged means that another process or person has changed the row since it was read. Nothing was
	// changed.
	ErrChanged = errors.New("semel: the row was changed by someone else; look again")
	// ErrConflict means that a message with the same identity and other content was applied. Nothing was changed. A
	// retry of the message would cause a second effect.
	ErrConflict = errors.New("semel: another content of this identity is applied")
	// ErrState means that the state of the row does not allow the action. Nothing was changed.
	ErrState = errors.New("semel: the row's state does not allow this")
	// ErrHalted means that a message stopped the consumer. The message that stopped the consumer is not acked and will
	// be delivered again.
	ErrHalted = errors.New("semel: halted by a message")
	// ErrUnfinished means that the run ended because it was idle, but some lanes have messages that are not acked.
	// Either the source could not read the messages, or a newer release has written their markers.
	ErrUnfinished = errors.New("semel: ended idle, and lanes stand still")
	// ErrOld means that the message is older than the retention and has no marker, so that it may have been applied
	// before. After ErrOld, the caller must roll back its transaction.
	ErrOld = errors.New("semel: it is older than what is kept, and may have taken effect before; roll back, and set it aside")
	// ErrBehind means that the store lacks messages that the broker counts as acked, because the store was restored
	// from a backup or failed over to a server that lacks its last commits. The effects of messages are missing in the
	// store, and the broker will not deliver these messages again. The consumer stops reading. The error that wraps
	// ErrBehind contains the figures and the remedy.
	ErrBehind = errors.New("semel: the store is behind the broker")
	// ErrSchema means that the schema of the store is missing, too old or too new. The error that wraps ErrSchema
	// contains the remedy.
	ErrSchema = errors.New("semel: the schema does not fit")
	// ErrUnsupported means that the store or source lacks a required feature.
	ErrUnsupported = errors.New("semel: not supported")
	// ErrIdentityChanged means that the store has a record of another definition of the consumer's identities, and that
	// the configuration does not contain that definition as consumer.Config.PreviousIdentity. Nothing was changed.
	ErrIdentityChanged = errors.New("semel: the identity is found in another way than before")
	// ErrForeignOwner means that the consumer's name belongs to another owner. Nothing was changed.
	ErrForeignOwner = errors.New("semel: the consumer's name belongs to another")
	// ErrClosed means that the consumer was stopped. Nothing was changed.
	ErrClosed = errors.New("semel: closed")
)
