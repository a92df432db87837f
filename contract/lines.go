package contract

import "context"

// MaxLine is the length in bytes of the longest name of a line.
const MaxLine = 256

// Lines is an optional ability of an Inbox that is Leases: to keep the order of messages
// that share a key, or a lane, also in the inbox.
//
// The rows of a line that have not ended (received, in progress, failed and to be tried
// again, blocked, parked) stand in it in the order in which they were written. The first
// of them is claimed like any other, or waits for a person if it is parked; the others
// are of StateBlocked. The commit that ends the first, or discards it, frees the next one
// and no other. While a line has rows, a mark of it that says Applied, and is no claim, is
// answered with Behind, and so is one that comes after a mark of the same batch that
// stays in the inbox.
type Lines interface {
	// Skip takes a row out of its line, so that those behind it go on, and frees the next
	// one if it was the first; its state stays. semel.ErrChanged: the row has another
	// revision; semel.ErrState: it stands in no line, or is ended; then nothing is changed.
	Skip(ctx context.Context, number, revision int64, a Act) error
	// First returns the number of the row that is the first of the line which a row stands
	// in; 0 if it stands in none.
	First(ctx context.Context, number int64) (int64, error)
	// Sweep frees the rows that are the first of their lines and are blocked all the same,
	// and says how many there were: what kept them back was removed by other means than
	// this interface's.
	Sweep(ctx context.Context) (freed int64, err error)
	// Dissolve takes all rows of a consumer out of their lines, and says how many there
	// were; those that had been blocked are due. It is for a consumer that keeps no lines any
	// more, and works in many transactions: after an error it may be called again.
	Dissolve(ctx context.Context, consumer string) (rows int64, err error)
}
