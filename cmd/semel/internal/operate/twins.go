package operate

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// leaves returns why an order of many rows leaves some of these rows, by their numbers. A retry of all rows
// does not run a conflict while the row with the first content of its identity is open: a person who has found
// out which content is right names the row by its number.
func (b Box) leaves(ctx context.Context, o Order, rows []allowed) (map[int64]string, error) {
	if o.Verb != admin.Retry && o.Verb != admin.Send || len(o.Filter.Numbers) > 0 && !o.Counted {
		return nil, nil
	}
	ids, conflicts := map[string][]string{}, map[semel.Key][]int64{}
	for _, a := range rows {
		if key := a.row.Key; a.row.Conflict {
			ids[key.Consumer] = append(ids[key.Consumer], key.ID)
			conflicts[key] = append(conflicts[key], a.row.Number)
		}
	}
	left := map[int64]string{}
	for consumer, of := range ids {
		for first, err := range b.Rows(ctx, store.RowFilter{Consumer: consumer, IDs: of}) {
			if err != nil {
				return nil, err
			}
			if first.Conflict || first.State == store.StateCompleted || first.State == store.StateDiscarded {
				continue
			}
			for _, n := range conflicts[first.Key] {
				left[n] = fmt.Sprintf("row %d has the first content of this identity and is %s; find out which is right, and discard that row or retry this one by its number", first.Number, first.State)
			}
		}
	}
	return left, nil
}
