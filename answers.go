package semel

import (
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/enum"
)

// String returns the name of the decision.
func (d Decision) String() string {
	return enum.Name([]string{
		DecideRetry: "retry", DecidePermanent: "permanent", DecidePark: "park", DecideDiscard: "discard",
		DecideDuplicate: "duplicate", DecidePreconditionFailed: "unmet", DecideUnknown: "unknown",
	}, d, "Decision")
}

// A handler returns nil or one of the following errors. Every error rolls back the writes of the handler for its
// message; other messages of the batch are not affected. After an error that these functions did not return, the
// message is retried.

// Decision is what a handler decides about its message. The errors that Retry, Permanent, Park, Discard and similar
// functions return contain a Decision.
type Decision uint8

const (
	// DecideRetry means that the handler runs again later.
	DecideRetry Decision = iota + 1
	// DecidePermanent means that a retry cannot succeed. The message ends as consumer.RetryPolicy.OnExhausted
	// says.
	DecidePermanent
	// DecidePark means that the message is parked for a person.
	DecidePark
	// DecideDiscard means that the message is closed without an effect.
	DecideDiscard
	// DecideDuplicate means that the effect exists already, for example because a unique constraint rejected the
	// insert.
	DecideDuplicate
	// DecidePreconditionFailed means that a guarded statement changed no row.
	DecidePreconditionFailed
	// DecideUnknown means that the outcome of a call is unknown, and that the handler runs again later.
	DecideUnknown
)

// HandlerError is an error that contains a decision.
type HandlerError struct {
	Decision Decision
	// After is the delay that the handler has passed to RetryAfter. 0 means the delay of the policy.
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

// Retry asks for another attempt after the delay of the policy. If err is nil, Retry returns nil. Permanent, Unknown
// and the other functions that take an error do the same.
func Retry(err error) error { return RetryAfter(err, 0) }

// RetryAfter asks for another attempt after at least d. If d is longer than consumer.Config.MaxInMemoryWait, the
// message waits in the store's inbox. If the store has no inbox, or the consumer writes no markers, the message is
// parked with the reason "wait too long".
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &HandlerError{Decision: DecideRetry, After: max(d, 0), Err: err}
}

// Unknown says that the outcome of a call is unknown: the call may have had its effect, but its response was
// lost or came too late. The message is retried after the delay of the policy.
//
// A consumer of consumer.NewLeased stores in the row that the outcome is unknown, until the outcome is determined.
// After consumer.Provider.Window has passed, the call is not repeated. In a consumer of consumer.NewLeased, an error
// without a decision and a panic also mean that the outcome is unknown. Retry and RetryAfter mean that the attempt had
// no effect, unless they wrap an error of Unknown. Package leasedkey treats the errors of its calls in the same way.
func Unknown(err error) error {
	if err == nil {
		return nil
	}
	return &HandlerError{Decision: DecideUnknown, Err: err}
}

// Permanent says that a retry cannot succeed. The message ends at once, as consumer.Config.Retry.OnExhausted says.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &HandlerError{Decision: DecidePermanent, Reason: ReasonPermanent, Err: err}
}

// Park parks the message for a person, with a reason.
func Park(reason string) error {
	return &HandlerError{Decision: DecidePark, Reason: Reason(reason)}
}

// Discard closes the message without an effect, with a reason.
func Discard(reason string) error {
	return &HandlerError{Decision: DecideDiscard, Reason: Reason(reason)}
}

// Duplicate says that the effect exists already, for example because a unique constraint rejected the insert. Semel
// then acks the message as a duplicate.
func Duplicate(err error) error {
	if err == nil {
		return nil
	}
	return &HandlerError{Decision: DecideDuplicate, Err: err}
}

// PreconditionFailed says that a guarded statement (… where status = 'awaiting') changed no row. The message
// ends as consumer.Config.OnPrecondition says.
func PreconditionFailed(what string) error {
	return &HandlerError{Decision: DecidePreconditionFailed, Reason: ReasonPrecondition, Err: errors.New(what)}
}

// OneRow converts the result of a guarded statement, such as a sql.Result, to the error that the handler returns. If
// err is not nil, OneRow returns err. If the statement did not change exactly one row, OneRow returns
// PreconditionFailed. If the statement changed one row, OneRow returns nil. With pgx, use pgxstore.OneRow in place of
// semel.OneRow.
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
