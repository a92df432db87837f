package contract

import "context"

// MaxResult is how many bytes the result of a message may have.
const MaxResult = 64 << 10

// ResultOf is what a result is kept under: the scope and the id of a mark.
type ResultOf struct {
	Scope int64
	ID    []byte
}

// ResultWriter is an optional ability of a TxStore: to keep beside a message's marker what
// its handler made. The result is there exactly when the transaction has committed that
// applied the message, and goes with the marker.
type ResultWriter[Tx any] interface {
	// KeepResult writes, or queues, a result of at most MaxResult bytes in tx, which a
	// batch that has the mark gave out. A second one takes the place of the first.
	KeepResult(ctx context.Context, tx Tx, of ResultOf, result []byte) error
}

// CommitResultWriter is an optional ability of a Batch of a ResultWriter: to keep results by its
// commit, with the statements that it sends then anyway, instead of by one that is waited for.
type CommitResultWriter interface {
	// WriteResultAtCommit has Commit keep a result, as ResultWriter.KeepResult would have; that it
	// could not is then said by Commit. The batch keeps the bytes until it is over.
	WriteResultAtCommit(of ResultOf, result []byte)
}

// ResultReader is an optional ability of a store that is a ResultWriter.
type ResultReader interface {
	// Results are what is kept of these, one by one, in transactions of its own; nil where
	// there is none, while an empty one is not nil.
	Results(ctx context.Context, of []ResultOf) ([][]byte, error)
}
