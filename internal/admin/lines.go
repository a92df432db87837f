package admin

import (
	"context"

	"github.com/semel-go/semel/store"
)

// Lines is implemented by a store.Inbox with store.Leases that keeps the order of messages with the same key
// or lane in the inbox.
//
// A line contains the rows of a key or lane that have not ended (received, in progress, waiting for a retry,
// blocked or parked), in the order in which they were written. The first row is claimed like any other row,
// or waits for an operator if it is parked. The other rows are in store.StateBlocked. The commit that ends or
// discards the first row unblocks only the next row. A message of the line that should be marked as
// store.Applied and is not claimed gets the verdict store.Behind in two cases: while the line has rows, and
// if an earlier message in its batch stays in the inbox.
type Lines interface {
	// Skip removes rows from their lines without changing their states, and unblocks the first rows of these
	// lines. Skip returns one error for each row, as a Requeuer does. MaySkip decides which rows Skip
	// rejects.
	Skip(ctx context.Context, a store.Act, rows ...store.RowRevision) []error
	// First returns the number of the first row of the line that contains the given row. First returns 0 if
	// the row is not in a line.
	First(ctx context.Context, number int64) (int64, error)
	// Sweep unblocks rows that are blocked although they are the first of their lines, because other programs
	// removed the rows before them. Sweep returns the number of unblocked rows.
	Sweep(ctx context.Context) (freed int64, err error)
	// Dissolve removes all rows of a consumer from their lines, makes the blocked rows due and returns the
	// number of rows. Dissolve is called for a consumer that no longer uses lines. Dissolve uses many
	// transactions. After an error Dissolve can be called again.
	Dissolve(ctx context.Context, consumer string) (rows int64, err error)
}
