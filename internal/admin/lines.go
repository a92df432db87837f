package admin

import (
	"context"

	"github.com/semel-go/semel/store"
)

// Lines is implemented by a store.Inbox with store.Leases that processes messages of the inbox with the same key or
// lane in order.
//
// A line is a queue: it contains the rows of a key or lane that have not ended (received, in progress, waiting for a
// retry, blocked or parked), in the order in which they were written. The first row of a line is claimed like any other
// row, or waits for an operator if it is parked. The later rows of a line are in store.StateBlocked. The commit that
// ends or discards the first row unblocks only the next row. A message without a claim that should be marked as
// store.Applied may have to wait for its line. The store returns store.Behind for this message in two cases: the line
// has rows, or an earlier message of the line in the same batch stays in the inbox.
type Lines interface {
	// Skip removes rows from their lines (queues) without changing their states, and unblocks the row that is then the
	// first of its line. Skip returns one error for each row, as a Requeuer does. MaySkip decides which rows Skip
	// rejects.
	Skip(ctx context.Context, a store.Act, rows ...store.RowRevision) []error
	// First returns the number of the first row of the line (queue) that contains the given row, or 0 if the row is in
	// no line.
	First(ctx context.Context, number int64) (int64, error)
	// Sweep unblocks rows that are blocked although they are the first of their lines (queues), because other programs
	// removed the earlier rows. Sweep returns the number of unblocked rows.
	Sweep(ctx context.Context) (freed int64, err error)
	// Dissolve removes all rows of a consumer from their lines (queues), makes the blocked rows due and returns the
	// number of rows. Dissolve is called for a consumer that no longer orders messages in lines. Dissolve uses many
	// transactions. After an error Dissolve can be called again.
	Dissolve(ctx context.Context, consumer string) (rows int64, err error)
}
