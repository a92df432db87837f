package semel

import (
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/enum"
)

// String is the decision's name.
func (d Decision) String() string {
	return enum.Name([]string{
		DecideRetry: "retry", DecidePermanent: "permanent", DecidePark: "park", DecideDiscard: "discard",
		DecideDuplicate: "duplicate", DecidePreconditionFailed: "unmet", DecideUnknown: "unknown",
	}, d, "Decision")
}

// What a handler can return besides nil. Every one of them, like any other
// error, rolls back what the handler wrote; nothing else of the batch is harmed.
// An error that none of these made is retryable.

// Decision is what a handler decided about its message; errors made by Retry,
// Permanent, Park and their siblings carry one.
type Decision uint8

// The decisions.
const (
	// DecideRetry: run again later.
	DecideRetry Decision = iota + 1
	// DecidePermanent: waiting cannot mend it; consumer.RetryPolicy.OnExhausted ends it.
	DecidePermanent
	// DecidePark: set aside for a person.
	DecidePark
	// DecideDiscard: close it; no effect will ever happen.
	DecideDiscard
	// DecideDuplicate: the effect is there already, as its own constraint says.
	DecideDuplicate
	// DecidePreconditionFailed: a guarded effect found nothing to change.
	DecidePreconditionFailed
	// DecideUnknown: nobody knows whether what it called for was done; run again later.
	DecideUnknown
)

// HandlerError is an error with a decision.
type HandlerError struct {
	Decision Decision
	// After is the wait a retry asks for; 0 leaves it to the policy.
	After  time.Duration
	Reason Reason
	Err    error
}

func (e *HandlerError) Error() string {
	switch {
	case e.Err != nil && e.Reason != "":
		return fmt.Sprintf("%s: %v", e.Reason, e.Err)
	case e.Err != nil:
		return e.Err.Error()
	default:
		return string(e.Reason)
	}
}

func (e *HandlerError) Unwrap() error { return e.Err }

// Retry asks for another attempt after the policy's wait. It returns nil for a
// nil error, as its siblings that take an error do.
func Retry(err error) error { return RetryAfter(err, 0) }

// RetryAfter asks for another attempt no sooner than after d. A wait longer
// than consumer.Config.MaxInMemoryWait is kept in the store's inbox; where that is none, or no
// marker is written, the message is parked as "wait too long".
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &HandlerError{Decision: DecideRetry, After: max(d, 0), Err: err}
}

// Unknown says that nobody knows whether a call of the handler took effect: its answer was
// lost, or came too late. The message is tried again after the policy's wait. With
// consumer.NewLeased the row remembers that its outcome is unknown until it is known what
// became of it, and after consumer.Provider.Window nobody calls blindly. There an error
// that has no decision, and a panic, say the same; Retry and RetryAfter say that this
// attempt had no effect, unless it is Unknown what they wrap. Calls of leasedkey are
// understood in the same way.
func Unknown(err error) error {
	if err == nil {
		return nil
	}
	return &HandlerError{Decision: DecideUnknown, Err: err}
}

// Permanent says that waiting cannot mend err: the message ends at once as
// consumer.Config.Retry.OnExhausted says.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &HandlerError{Decision: DecidePermanent, Reason: ReasonPermanent, Err: err}
}

// Park sets the message aside for a person, with a reason.
func Park(reason string) error {
	return &HandlerError{Decision: DecidePark, Reason: Reason(reason)}
}

// Discard closes the message without an effect, with a reason.
func Discard(reason string) error {
	return &HandlerError{Decision: DecideDiscard, Reason: Reason(reason)}
}

// Duplicate says that the effect is there already: its own unique constraint
// refused the second. The message is settled as a duplicate.
func Duplicate(err error) error {
	if err == nil {
		return nil
	}
	return &HandlerError{Decision: DecideDuplicate, Err: err}
}

// PreconditionFailed says that a guarded effect (… where status = 'awaiting') met no row.
// consumer.Config.OnPrecondition decides what becomes of the message.
func PreconditionFailed(what string) error {
	return &HandlerError{Decision: DecidePreconditionFailed, Reason: ReasonPrecondition, Err: errors.New(what)}
}

// OneRow turns the answer to a guarded statement, such as a sql.Result, into the
// handler's outcome: err as it is, PreconditionFailed unless the statement changed one row.
// For pgx there is pgxstore.OneRow.
//
//	return semel.OneRow(tx.ExecContext(ctx, `update … where id = ? and status = 'awaiting'`, id))
func OneRow(result interface{ RowsAffected() (int64, error) }, err error) error {
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n != 1 {
		err = PreconditionFailed(fmt.Sprintf("changed %d rows, not 1", n))
	}
	return err
}
