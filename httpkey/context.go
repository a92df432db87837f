package httpkey

import (
	"context"
	"fmt"
)

// Attempt describes a request to its handler.
type Attempt struct {
	// Key is the key that the client sent, without quotes. Caller is the client.
	Key, Caller string
	// IdempotencyKey is the key for the calls that the handler makes. All attempts of a request have the same
	// IdempotencyKey.
	IdempotencyKey string
	// Number is the number of the attempt, from 1, with NewLeased. With New, Number is 1.
	Number int
	// Unknown reports that an earlier attempt may have had an effect.
	Unknown bool
	// Finishing reports that a Completer runs an abandoned request, so no client waits.
	Finishing bool
}

type (
	attemptKey struct{}
	txKey      struct{}
)

// AttemptFrom returns the attempt of a request from its context. If no Guard protects the request,
// AttemptFrom returns false.
func AttemptFrom(ctx context.Context) (Attempt, bool) {
	a, ok := ctx.Value(attemptKey{}).(Attempt)
	return a, ok
}

// TxFrom returns the transaction of a request from its context. The handler must write its effect in the transaction of
// the request, and must neither commit nor roll back. After the handler has returned, the guard commits the transaction
// with the key and the answer. TxFrom returns an error if no Guard of New protects the request, or if the store's
// transactions have another type.
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
