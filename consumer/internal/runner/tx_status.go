package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/semel-go/semel/store"
)

// ErrTimeout is the cause with which the context of a handler ends that ran too long.
var ErrTimeout = errors.New("semel: the handler ran longer than its timeout")

var ErrGoexit = errors.New("the handler ended its goroutine (runtime.Goexit)")

// errSwallowed: the transaction can no longer commit, no handler said so, and
// the store cannot tell why. Waiting may mend it.
var errSwallowed = errors.New("the handler returned nil although its transaction can no longer commit: one of its statements failed, or it committed or rolled back by itself; the store does not know which. Return the errors of statements")

// SwallowedError is what a handler should have returned that left its transaction
// broken and said nothing.
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

// TxAborted reports whether a batch knows that it can no longer commit.
func TxAborted(batch any) bool {
	status, knows := batch.(store.TxStatus)
	return knows && status.TxAborted()
}

// Recover makes a panic of a handler its failure; it is deferred.
func Recover(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the handler panicked: %v\n%s", r, debug.Stack())
	}
}

// StoreFault reports whether the message that met an error is known not to have caused it.
func StoreFault(st any, err error) bool {
	if _, closed := errors.AsType[*notOpened](err); closed {
		return true
	}
	e, ok := st.(interface{ IsStoreFault(err error) bool })
	return ok && err != nil && e.IsStoreFault(err)
}

// classifyHandler says what an error that a handler returned means for its batch.
func classifyHandler[Tx any](ctx context.Context, st store.TxStore[Tx], batch store.Batch[Tx], err error) store.Class {
	if knows, ok := batch.(store.TxStatus); ok {
		return knows.ClassifyHandler(ctx, err)
	}
	return st.Classify(err)
}

// notOpened is why no transaction could begin in which an answer was to be applied. It is no
// message's fault: any message would have met it, however well the store answers looks.
type notOpened struct{ error }

func (e *notOpened) Unwrap() error { return e.error }
