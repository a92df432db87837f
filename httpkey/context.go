package httpkey

import (
	"context"
	"fmt"
)

// Attempt is what a handler is told of its request.
type Attempt struct {
	// Key is what the client sent, without its quotes, and Caller who that is.
	Key, Caller string
	// IdempotencyKey is to be given to others that the handler calls: the same for each
	// attempt of this key, and for no other key.
	IdempotencyKey string
	// Number counts, with NewLeased, the attempts, from 1; with New it is 1.
	Number int
	// Unknown says that nobody knows whether an attempt before this one had an effect.
	Unknown bool
	// Finishing says that no client waits: a Completer has the handler finish what one left.
	Finishing bool
}

type (
	attemptKey struct{}
	txKey      struct{}
)

// AttemptFrom returns the attempt of a request by its context; false where no Guard is
// around the handler, or the request passed it by.
func AttemptFrom(ctx context.Context) (Attempt, bool) {
	a, ok := ctx.Value(attemptKey{}).(Attempt)
	return a, ok
}

// TxFrom returns the transaction of a request by its context, in which its effect must be
// made. It commits with the key and the answer after the handler has returned, which neither
// commits nor rolls back. An error says that no Guard of New is around the handler, or that
// its store has transactions of another type.
func TxFrom[Tx any](ctx context.Context) (tx Tx, err error) {
	switch held := ctx.Value(txKey{}).(type) {
	case nil:
		return tx, fmt.Errorf("httpkey: the context has no transaction: it is not that of a request which a Guard of New protects")
	case Tx:
		return held, nil
	default:
		return tx, fmt.Errorf("httpkey: the transaction of the context is a %T, and no %T", held, &tx)
	}
}
