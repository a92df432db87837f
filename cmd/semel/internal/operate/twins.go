package operate

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/store"
)

// leaves says why an order of many rows leaves this one; empty if it does not. A retry of all lets
// no conflict run whose first content is not closed: a person names such a row by its number, who
// has found out which content is right.
func (b Box) leaves(ctx context.Context, o Order, row store.StoredRow) (string, error) {
	if o.Verb != Retry && o.Verb != Send || len(o.Filter.Numbers) > 0 || !row.Conflict {
		return "", nil
	}
	for other, err := range b.Rows(ctx, store.RowFilter{Consumer: row.Key.Consumer, ID: row.Key.ID}) {
		if err != nil {
			return "", err
		}
		if other.Key == row.Key && !other.Conflict && other.State != store.StateCompleted && other.State != store.StateDiscarded {
			return fmt.Sprintf("row %d has the first content of this identity and is %s; find out which is right, and discard that row or retry this one by its number", other.Number, other.State), nil
		}
	}
	return "", nil
}
