package proof

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/semel-go/semel/sqlstore"
)

// Accord is what a look at all rows found when all was over, and at what was written with them.
type Accord struct {
	// Rows and Intents are as many as were compared, Denied rows of which a marker, a stream or
	// a cause said otherwise.
	Rows    int64 `json:"rows_compared"`
	Intents int64 `json:"intents_compared"`
	Denied  int   `json:"rows_denied"`
}

// Hear compares the rows of all consumers in a database of PostgreSQL.
func (a *Accord) Hear(ctx context.Context, db *sql.DB) error {
	store, err := sqlstore.Postgres(db, sqlstore.Options{})
	if err != nil {
		return err
	}
	consumers, err := store.Consumers(ctx)
	if err != nil {
		return err
	}
	for _, name := range consumers {
		for after := int64(0); ; {
			found, err := store.Denials(ctx, name, after, 5000)
			if err != nil {
				return err
			}
			a.Rows, a.Intents, a.Denied = a.Rows+found.Rows, a.Intents+found.Intents, a.Denied+len(found.Denied)
			if found.Rows == 0 {
				break
			}
			after = found.Last
		}
	}
	return nil
}

// Wrong says how many rows are denied.
func (a Accord) Wrong() error {
	if a.Denied != 0 {
		return fmt.Errorf("%d of %d rows are denied by what was written with them", a.Denied, a.Rows)
	}
	return nil
}
