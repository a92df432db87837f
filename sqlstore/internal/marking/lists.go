package marking

import (
	"context"
	"database/sql"
	"iter"

	"github.com/semel-go/semel/sqlstore/internal/database"
)

// Lists runs statements over lists in a transaction.
type Lists struct {
	DB *database.DB
	Tx *sql.Tx
	// Own: tx is of the store's own database, so that what is prepared there fits.
	Own bool
}

// Chunks are the pieces of a list that statements take: those that are prepared,
// or else as few as can be.
func (l Lists) Chunks(of []int) iter.Seq[[]int] {
	if !l.Own || l.DB.Prepared.ByLength.Load() == nil {
		return l.DB.Dialect.Chunks(of)
	}
	return func(yield func([]int) bool) {
		for _, n := range l.DB.Dialect.Lengths {
			for len(of) >= n {
				if !yield(of[:n:n]) {
					return
				}
				of = of[n:]
			}
		}
	}
}

// query runs a statement over tuples of so many values, which lie in flat one
// after the other; more are further arguments.
func (l Lists) query(ctx context.Context, statement string, width int, flat []any, more ...any) (*sql.Rows, error) {
	if prepared := l.DB.Prepared.Of(statement, len(flat)/width); l.Own && prepared != nil {
		return l.Tx.StmtContext(ctx, prepared).QueryContext(ctx, append(flat, more...)...)
	}
	text, args := l.DB.Bulk(statement, width, flat)
	return l.Tx.QueryContext(ctx, text, append(args, more...)...)
}
