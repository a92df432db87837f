package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Legal returns those of the commands that may change a row in its present state. Legal includes a retry of a row that
// is due, because the command can process the row itself. The parameter worked has the meaning of Order.Worked.
func (b Box) Legal(ctx context.Context, number int64, commands []admin.Verb, worked func(store.StoredRow) error) (legal []admin.Verb, err error) {
	rows, err := b.Inbox.Rows(ctx, store.RowFilter{Numbers: []int64{number}, Limit: 1})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	for _, verb := range commands {
		may, err := b.mayChange(ctx, verb, rows[0], worked)
		if err != nil {
			return nil, fmt.Errorf("store %s: row %d: find its commands: %w", b.Store, number, err)
		}
		if may {
			legal = append(legal, verb)
		}
	}
	return legal, nil
}

func (b Box) mayChange(ctx context.Context, verb admin.Verb, r store.StoredRow, worked func(store.StoredRow) error) (bool, error) {
	if verb == admin.Edit {
		if r.Message == nil || admin.MayEdit(&r, nil) != nil {
			return false, nil
		}
		first, found, err := b.firstMarker(ctx, r)
		return !found || first.Outcome != store.Applied && first.Outcome != store.Waiting, err
	}
	err := (Order{Verb: verb, DryRun: true, Worked: worked}).checkRow(r)
	if err != nil && !(errors.Is(err, admin.ErrDueAlready) && verb != admin.Release) { // retry --run processes a row that is due
		return false, nil
	}
	taken, err := b.rejectsRetry(ctx, verb, r)
	return !taken, err
}
