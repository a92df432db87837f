package admin

import "context"

// MaxResult is the maximum size of a message's result in bytes.
const MaxResult = 64 << 10

// ResultOf is the key of a result: the scope and the id of a mark.
type ResultOf struct {
	Scope int64
	ID    []byte
}

// Results is implemented by a store.TxStore that can store a handler's result beside the marker. The result exists
// exactly if the transaction that applied the message committed, and is removed together with the marker.
type Results[Tx any] interface {
	// KeepResult writes, or queues, a result of at most MaxResult bytes in tx, which must be
	// the Tx of a batch with the mark. A second result replaces the first.
	KeepResult(ctx context.Context, tx Tx, of ResultOf, result []byte) error
	// Results returns the result of each key, or nil if there is none. An empty result is not
	// nil. Results reads in its own transactions.
	Results(ctx context.Context, of []ResultOf) ([][]byte, error)
}
