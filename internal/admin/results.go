package admin

import "context"

// MaxResult is the maximum size of a message's result in bytes.
const MaxResult = 64 << 10

// ResultOf is the key of a result: the number of the source (Scope) and the id of a marker.
type ResultOf struct {
	Scope int64
	ID    []byte
}

// Results is implemented by a store.TxStore that can store a handler's result beside the marker. The result
// exists if and only if the transaction that applied the message committed. The result is removed together
// with the marker.
type Results[Tx any] interface {
	// KeepResult writes, or queues, a result of at most MaxResult bytes in tx. tx must be the Tx of a batch
	// that has marked the message. A second result replaces the first.
	KeepResult(ctx context.Context, tx Tx, of ResultOf, result []byte) error
	// Results returns the result of each key. The result of a key is nil if none is stored. A stored result
	// that is empty is not nil. Results reads in its own transactions.
	Results(ctx context.Context, of []ResultOf) ([][]byte, error)
}
