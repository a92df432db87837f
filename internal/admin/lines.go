package admin

import (
	"context"

	"github.com/semel-go/semel/store"
)

// Lines is implemented by a store.Inbox with store.Leases that keeps the order of messages with the same key or
// lane in the inbox.
//
// A line contains the rows that have not ended (received, in progress, waiting for a retry, blocked or
// parked), in the order in which they were written. The first row is claimed like any other row, or
// waits for an operator if it is parked. The other rows are in store.StateBlocked. The commit that ends or
// discards the first row unblocks the next row only. While a line has rows, a mark of the line with
// the outcome store.Applied and without a claim gets the verdict store.Behind. So does a mark that follows, in its
// batch, a mark whose message stays in the inbox.
type Lines interface {
	// Skip removes rows from their lines without changing their states, and unblocks the first rows of
	// these lines. Skip returns one error for each row, as a Requeuer does; MaySkip says which rows it
	// rejects.
	Skip(ctx context.Context, a store.Act, rows ...store.RowRevision) []error
	// First returns the number of the first row of the line that the given row is in; 0 if it is
	// not in a line.
	First(ctx context.Context, number int64) (int64, error)
	// Sweep unblocks rows that are blocked although they are the first of their lines, because other
	// code removed the rows before them. Sweep returns their number.
	Sweep(ctx context.Context) (freed int64, err error)
	// Dissolve removes all rows of a consumer from their lines, makes the blocked rows due and
	// returns the number of rows. Dissolve is called for a consumer that no longer uses lines.
	// Dissolve uses many transactions; after an error it can be called again.
	Dissolve(ctx context.Context, consumer string) (rows int64, err error)
}
