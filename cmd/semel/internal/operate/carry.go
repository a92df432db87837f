package operate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Carry executes an operator's command and yields the result for each row. Carry reads, checks and changes
// one page of rows at a time, so the number of statements depends on the number of pages. Carry ends with an
// error if the store fails or ctx ends. Results that were yielded before the error are final.
func (b Box) Carry(ctx context.Context, o Order) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		rows, err := b.choose(ctx, o.Filter, o.Group)
		if err != nil {
			yield(Result{}, err)
			return
		}
		for some := range slices.Chunk(rows, page) {
			if ctx.Err() != nil {
				yield(Result{}, ctx.Err())
				return
			}
			results, err := b.executePage(ctx, o, some)
			for _, r := range results {
				if !yield(r, nil) {
					return
				}
			}
			if err != nil {
				yield(Result{}, err)
				return
			}
		}
	}
}

// choice is a row that a command changes. The field state is the row's state when the command first read the
// row; empty if the command has not read the row.
type choice struct {
	number int64
	state  store.RowState
}

// Chosen returns the row numbers of the chosen rows. Call Chosen before the command changes a row: a change could
// alter which rows the filter and the failure group choose. Chosen includes requested numbers
// without a row, so that the command reports these numbers.
func (b Box) Chosen(ctx context.Context, f store.RowFilter, group string) ([]int64, error) {
	rows, err := b.choose(ctx, f, group)
	numbers := make([]int64, len(rows))
	for i, c := range rows {
		numbers[i] = c.number
	}
	return numbers, err
}

func (b Box) choose(ctx context.Context, f store.RowFilter, group string) (rows []choice, err error) {
	for _, n := range slices.Compact(slices.Sorted(slices.Values(f.Numbers))) {
		rows = append(rows, choice{number: n})
	}
	if len(rows) > 0 {
		return rows, nil
	}
	for r, err := range b.Rows(ctx, f) {
		if err != nil {
			return nil, err
		}
		if group == "" || Failure(r) == group {
			rows = append(rows, choice{r.Number, r.State})
		}
	}
	return rows, nil
}

// commandPage is one page of a command's rows, with the result for each row.
type commandPage struct {
	Box
	Order
	rows    []choice
	results []Result
}

// executePage executes a command on a page of rows. If a row changes after it was read, the method reads
// and checks the row once more. After an error, the method returns only the rows with a result. If ctx ends
// while rows are being changed, the method returns the error of ctx.
func (b Box) executePage(ctx context.Context, o Order, rows []choice) ([]Result, error) {
	c := &commandPage{Box: b, Order: o, rows: rows, results: make([]Result, len(rows))}
	open := make([]int, len(rows))
	for i := range open {
		open[i] = i
	}
	changed, err := c.execute(ctx, open)
	if err == nil && len(changed) > 0 && ctx.Err() == nil {
		_, err = c.execute(ctx, changed)
	}
	if err == nil && slices.ContainsFunc(c.results, func(r Result) bool { return r.Result == Failed }) {
		err = ctx.Err()
	}
	return slices.DeleteFunc(c.results, func(r Result) bool { return r.Result == "" }), err
}

// execute reads the rows with the given indexes (places) and changes the rows that the command may change. The result
// changed has the indexes of rows that someone else changed after execute had read these rows.
func (c *commandPage) execute(ctx context.Context, places []int) (changed []int, err error) {
	allowed, err := c.checkRows(ctx, places)
	if err != nil {
		return nil, err
	}
	if c.DryRun {
		return nil, c.predictResults(ctx, allowed)
	}
	rows := make([]store.StoredRow, len(allowed))
	for k, a := range allowed {
		rows[k] = a.row
	}
	for k, err := range c.applyCommand(ctx, c.Order, rows) {
		i, row := allowed[k].place, rows[k]
		c.results[i] = c.correctUnblocked(i, row.State, c.results[i].withError(err, c.successResult()))
		if errors.Is(err, semel.ErrChanged) {
			changed = append(changed, i)
		}
	}
	return changed, nil
}

// allowedRow is a row that the command may change. The store can still reject the change of an allowed
// row.
type allowedRow struct {
	place int
	row   store.StoredRow
}

// checkRows reads the rows with the given indexes (places). checkRows records a result for rows that the command
// rejects or skips, and returns all other rows.
func (c *commandPage) checkRows(ctx context.Context, places []int) ([]allowedRow, error) {
	numbers := make([]int64, len(places))
	for k, i := range places {
		numbers[k] = c.rows[i].number
	}
	found, err := c.readRows(ctx, numbers)
	if err != nil {
		return nil, err
	}
	var all []allowedRow
	refused := map[int]Result{}
	for _, i := range places {
		row, there := found[c.rows[i].number]
		r := Result{Store: c.Store, Number: c.rows[i].number}
		if !there {
			r.Result, r.Error = Refused, "there is no row with this number"
			refused[i] = r
			continue
		}
		if c.rows[i].state == "" {
			c.rows[i].state = row.State
		}
		r.Consumer, r.ID, r.Reason, r.previousState, r.Undo = row.Key.Consumer, row.Key.ID, row.Reason, row.State, c.undo(row)
		r.Conflict = row.Conflict
		if err := c.checkRow(row); err != nil {
			if r = r.withError(err, ""); r.Result == Failed {
				r.Result = Refused
			}
			refused[i] = c.correctUnblocked(i, row.State, r)
			continue
		}
		c.results[i] = r // Result stays empty until the row is processed
		all = append(all, allowedRow{i, row})
	}
	left, err := c.rowsToSkip(ctx, c.Order, all)
	if err != nil {
		return nil, err
	}
	for i, r := range refused {
		c.results[i] = r
	}
	return slices.DeleteFunc(all, func(a allowedRow) bool {
		why, leaves := left[a.row.Number]
		if leaves {
			c.results[a.place].Result, c.results[a.place].Error = Left, why
		}
		return leaves
	}), nil
}

// correctUnblocked corrects the result of a row whose retry is rejected because the row is already running or
// applied. The row was parked or blocked when the command first read the row, and was unblocked since, for
// instance because an earlier row of the stream was applied. A row that is running or applied needs no retry.
func (c *commandPage) correctUnblocked(place int, now store.RowState, r Result) Result {
	was := c.rows[place].state
	if c.Verb != admin.Retry && c.Verb != admin.Send || r.Result != Refused {
		return r
	}
	switch was {
	case store.StateParked, store.StateDeadLettered, store.StateFailedRetryable, store.StateBlocked:
	default:
		return r
	}
	switch now {
	case store.StateReceived, store.StateInProgress:
		r.Result, r.Error = Due, "it was unblocked after this command began; nothing is recorded"
	case store.StateCompleted:
		r.Result, r.Error = Done, "it was unblocked and applied after this command began; nothing is recorded"
	}
	return r
}

// predictResults sets the results of a dry run.
func (c *commandPage) predictResults(ctx context.Context, all []allowedRow) error {
	for _, a := range all {
		r := &c.results[a.place]
		taken, err := c.rejectsRetry(ctx, c.Verb, a.row)
		switch {
		case err != nil:
			return fmt.Errorf("store %s: row %d: look up its identity: %w", c.Store, a.row.Number, err)
		case taken:
			*r = r.withError(semel.ErrConflict, Would)
		default:
			*r = r.withError(nil, Would)
		}
	}
	return nil
}

// applyCommand executes the command on rows and returns one error per row, nil for success.
func (b Box) applyCommand(ctx context.Context, o Order, rows []store.StoredRow) []error {
	act, seen := store.Act{Verb: o.Verb.Recorded(), Who: o.Who, Why: o.Why}, make([]store.RowRevision, len(rows))
	for k, r := range rows {
		seen[k] = r.Seen()
	}
	switch {
	case len(rows) == 0:
		return nil
	case o.Verb == admin.Discard:
		return b.Discard(ctx, act, seen...)
	case o.Verb.MakesDue() && b.Requeuer != nil:
		return b.requeue(ctx, o.Verb, act, rows)
	case o.Verb == admin.Reopen && b.Requeuer != nil:
		return b.Requeuer.Reopen(ctx, act, seen...)
	case o.Verb == admin.Suppress && b.Requeuer != nil:
		return b.Requeuer.Suppress(ctx, act, seen...)
	case o.Verb == admin.Resolve && b.Resolver != nil:
		return b.Resolver.Resolve(ctx, o.Outcome, act, seen...)
	case o.Verb == admin.Skip && b.Lines != nil:
		return b.Lines.Skip(ctx, act, seen...)
	}
	errs := make([]error, len(rows))
	for k := range errs {
		errs[k] = fmt.Errorf("store %s keeps no waiting messages: %w", b.Store, semel.ErrUnsupported)
	}
	return errs
}

// requeue retries rows or ends their claims.
func (b Box) requeue(ctx context.Context, verb admin.Verb, act store.Act, rows []store.StoredRow) []error {
	errs := make([]error, len(rows))
	for _, e := range []admin.RowEvent{admin.RowRetried, admin.RowReleased} {
		var seen []store.RowRevision
		var places []int
		for k, r := range rows {
			if verb.Event(r.State) == e {
				seen, places = append(seen, r.Seen()), append(places, k)
			}
		}
		do := b.Requeuer.Requeue
		if e == admin.RowReleased {
			do = b.Requeuer.Release
		}
		if len(seen) == 0 {
			continue
		}
		for k, err := range do(ctx, act, seen...) {
			errs[places[k]] = err
		}
	}
	return errs
}
