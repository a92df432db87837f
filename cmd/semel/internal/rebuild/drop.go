package rebuild

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/store"
)

// Dropped returns the generation that `semel rebuild drop` removes. After a switch, Dropped returns the
// previous generation, otherwise the generation that the rebuild fills.
func Dropped(all []admin.StoredGeneration, of int64) (number int64, err error) {
	number = -1
	for _, g := range all {
		switch {
		case g.Number == of && (g.State == generations.Building || g.State == generations.Dropped):
			return of, nil
		case g.Number < of && g.State == generations.Old:
			number = g.Number
		}
	}
	for i := len(all) - 1; i >= 0 && number < 0; i-- { // an earlier drop was interrupted and can continue
		if all[i].Number < of && all[i].State == generations.Dropped {
			number = all[i].Number
		}
	}
	if number < 0 {
		return 0, fmt.Errorf("no records of the generation before %d are kept: %w", of, semel.ErrState)
	}
	return number, nil
}

// slice is the number of records that one transaction removes.
const slice = 1000

// Drop removes the records of a generation in many short transactions, and returns the number of removed
// records. Drop also continues an interrupted drop.
func Drop(ctx context.Context, st admin.Generations, name string, number int64, a store.Act) (removed int, err error) {
	all, err := st.Generations(ctx, name)
	if err != nil {
		return 0, err
	}
	for _, g := range all {
		if g.Number == number && g.State != generations.Dropped {
			err = st.EndGeneration(ctx, name, number, a)
		}
	}
	for err == nil {
		var n int
		if n, err = st.ForgetGeneration(ctx, name, number, slice); n < slice && err == nil {
			return removed + n, nil
		}
		removed += n
	}
	return removed, err
}
