package rebuild

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Dropped is what a drop of this rebuild removes: of one that was switched to, the generation
// before it; of one that was not, its own.
func Dropped(all []admin.StoredGeneration, of int64) (number int64, err error) {
	number = -1
	for _, g := range all {
		switch {
		case g.Number == of && (g.State == store.GenerationBuilding || g.State == store.GenerationDropped):
			return of, nil
		case g.Number < of && g.State == store.GenerationOld:
			number = g.Number
		}
	}
	for i := len(all) - 1; i >= 0 && number < 0; i-- { // it was begun, and may go on
		if all[i].Number < of && all[i].State == store.GenerationDropped {
			number = all[i].Number
		}
	}
	if number < 0 {
		return 0, fmt.Errorf("nothing is kept of what was before generation %d: %w", of, semel.ErrState)
	}
	return number, nil
}

// slice is how many records are removed at once, in a transaction that is short.
const slice = 1000

// Drop removes what is kept of a generation, some records at a time, and returns how many it
// removed. One that was begun goes on.
func Drop(ctx context.Context, st admin.Generations, name string, number int64, a store.Act) (removed int, err error) {
	all, err := st.Generations(ctx, name)
	if err != nil {
		return 0, err
	}
	for _, g := range all {
		if g.Number == number && g.State != store.GenerationDropped {
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
