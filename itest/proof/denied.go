package proof

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/semel-go/semel/sqlstore"
)

// Accord is the result of a comparison at the end of a fault test: all inbox rows with the markers, streams and causes
// that were written in the same transactions.
type Accord struct {
	// Rows and Intents are the numbers of compared rows. Denied is the number of rows that contradict a
	// marker, a stream or a cause.
	Rows    int64 `json:"rows_compared"`
	Intents int64 `json:"intents_compared"`
	Denied  int   `json:"rows_denied"`
}

// Hear compares the rows of all consumers in a PostgreSQL database, and adds the result to the Accord.
func (a *Accord) Hear(ctx context.Context, db *sql.DB) {
	store := Must(sqlstore.Postgres(db, sqlstore.Options{}))
	for _, name := range Must(store.Consumers(ctx)) {
		for after, more := int64(0), true; more; {
			found := Must(store.Denials(ctx, name, after, 5000))
			a.Rows, a.Intents, a.Denied = a.Rows+found.Rows, a.Intents+found.Intents, a.Denied+len(found.Denied)
			after, more = found.Last, found.Rows != 0
		}
	}
}

// Wrong returns an error with the number of contradicting rows.
func (a Accord) Wrong() error {
	if a.Denied != 0 {
		return fmt.Errorf("%d of %d rows contradict records of the same transaction", a.Denied, a.Rows)
	}
	return nil
}
