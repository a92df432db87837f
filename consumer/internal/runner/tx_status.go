package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/semel-go/semel/store"
)

// ErrTimeout is the cause of the cancellation of a handler's context after the timeout.
var ErrTimeout = errors.New("semel: the handler ran longer than its timeout")

// ErrGoexit is the error of a handler that ended its goroutine.
var ErrGoexit = errors.New("the handler ended its goroutine (runtime.Goexit)")

// errSwallowed means that the transaction can no longer commit although no handler returned an error, and
// that the store does not know the cause. A retry may succeed.
var errSwallowed = errors.New("the handler returned nil although its transaction can no longer commit: one of its statements failed, or it committed or rolled back by itself; the store does not know which. Return the errors of statements")

// SwallowedError returns the error of a handler that returned nil although its transaction can no
// longer commit.
func SwallowedError(batch any) error {
	knows, _ := batch.(store.TxStatus)
	if knows == nil {
		return errSwallowed
	}
	by := knows.AbortCause()
	if by == nil {
		return errSwallowed
	}
	return fmt.Errorf("the handler returned nil although its transaction can no longer commit: it swallowed an error: %w", by)
}

// TxAborted reports whether a batch reports that its transaction can no longer commit.
func TxAborted(batch any) bool {
	status, knows := batch.(store.TxStatus)
	return knows && status.TxAborted()
}

// Recover, when deferred, sets *err to the panic of a handler and its stack.
func Recover(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the handler panicked: %v\n%s", r, debug.Stack())
	}
}

// StoreFault reports whether the message cannot have caused an error, because the error concerns the store.
func StoreFault(st any, err error) bool {
	if _, closed := errors.AsType[*notOpened](err); closed {
		return true
	}
	e, ok := st.(interface{ IsStoreFault(err error) bool })
	return ok && err != nil && e.IsStoreFault(err)
}

// classifyHandler returns the class of an error that a handler returned in this batch.
func classifyHandler[Tx any](ctx context.Context, st store.TxStore[Tx], batch store.Batch[Tx], err error) store.Class {
	if knows, ok := batch.(store.TxStatus); ok {
		return knows.ClassifyHandler(ctx, err)
	}
	return st.Classify(err)
}

// notOpened is the error of a transaction in which an answer should have been applied, but which could not
// begin. No message has caused this error: every message fails in this way, even while the store still
// responds to lookups.
type notOpened struct{ error }

func (e *notOpened) Unwrap() error { return e.error }
