package sqlsuite

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// ManyActs is a store whose statements are counted.
type ManyActs[Tx any] struct {
	Store interface {
		store.TxStore[Tx]
		store.Inbox
		admin.Requeuer
	}
	// Statements returns how many statements were sent, BEGIN and COMMIT among them.
	Statements func() int64
	// Poison has each update of a row of the inbox fail, until the call that it returns.
	Poison func(t testing.TB, number int64) (end func())
	// Hold locks a row, until the call that it returns; nil where a writer locks everything.
	Hold func(t testing.TB, number int64) (end func())
	// Lose has each COMMIT succeed and return an error that does not say so, until the call that it returns:
	// first one of the server, then one of the connection. nil where no driver can be made to.
	Lose func() (end func())
}

const (
	// many rows are acted on with no more than mostStatements.
	many           = 1000
	mostStatements = 30
)

// Run holds a store to act on many rows with few statements, whatever one of them does.
func (w ManyActs[Tx]) Run(t *testing.T) {
	w.few(t, w.park(t, many))
	w.one(t, "one_row_that_cannot_be_written_keeps_no_other_from_it", func(ctx context.Context, n int64) (context.Context, func()) {
		return ctx, w.Poison(t, n)
	})
	if w.Lose != nil {
		w.unanswered(t, "an_error_of_the_server")
		w.unanswered(t, "an_error_of_the_connection")
	}
	if w.Hold != nil {
		w.one(t, "one_row_that_is_locked_keeps_no_other_waiting", func(ctx context.Context, n int64) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			end := w.Hold(t, n)
			return ctx, func() { cancel(); end() }
		})
	}
}

// unanswered acts on rows, and the answer of the COMMIT is lost: nobody knows what became of them, and nothing is
// tried again.
func (w ManyActs[Tx]) unanswered(t *testing.T, by string) {
	t.Run("no_row_is_acted_on_again_after_a_commit_without_an_answer/"+by, func(t *testing.T) {
		rows := w.park(t, 100)
		seen := w.seen(t, rows)
		before, end := w.Statements(), w.Lose()
		errs := w.Store.Requeue(t.Context(), store.Act{Verb: "retry", Who: "ana", Why: "test"}, seen...)
		end()
		if sent := w.Statements() - before; sent > mostStatements {
			t.Errorf("%d statements", sent)
		}
		for i, err := range errs {
			acts, actsErr := w.Store.Acts(t.Context(), rows[i], 0)
			if err == nil || errors.Is(err, semel.ErrChanged) || actsErr != nil || len(acts) != 1 {
				t.Errorf("row %d of %d: %v, with %d acts, %v", i, len(rows), err, len(acts), actsErr)
			}
		}
	})
}

// few retries and discards all of the rows, and leaves them discarded.
func (w ManyActs[Tx]) few(t *testing.T, rows []int64) {
	t.Run("many_rows_take_few_statements", func(t *testing.T) {
		for _, a := range []struct {
			verb string
			do   func(context.Context, store.Act, ...store.RowRevision) []error
			want store.RowState
		}{
			{"retry", w.Store.Requeue, store.StateFailedRetryable},
			{"discard", w.Store.Discard, store.StateDiscarded},
		} {
			seen := w.seen(t, rows)
			before := w.Statements()
			if err := errors.Join(a.do(t.Context(), store.Act{Verb: a.verb, Who: "ana", Why: "test"}, seen...)...); err != nil {
				t.Fatal(err)
			}
			sent := w.Statements() - before
			t.Logf("%s of %d rows: %d statements", a.verb, len(rows), sent)
			if sent > mostStatements {
				t.Errorf("%s of %d rows took %d statements, want at most %d", a.verb, len(rows), sent, mostStatements)
			}
			for _, r := range w.rows(t, rows) {
				if r.State != a.want {
					t.Fatalf("after %s row %d is %s", a.verb, r.Number, r.State)
				}
			}
		}
		acts, err := w.Store.Acts(t.Context(), 0, 3*many)
		if err != nil || len(acts) != 2*len(rows) {
			t.Errorf("%d acts are recorded, want %d: %v", len(acts), 2*len(rows), err)
		}
	})
}

// one acts on rows of which one cannot be changed.
func (w ManyActs[Tx]) one(t *testing.T, name string, hinder func(context.Context, int64) (context.Context, func())) {
	t.Run(name, func(t *testing.T) {
		rows := w.park(t, 100)
		seen, hindered := w.seen(t, rows), 40
		ctx, end := hinder(t.Context(), rows[hindered])
		errs := w.Store.Requeue(ctx, store.Act{Verb: "retry", Who: "ana", Why: "test"}, seen...)
		end()
		for i, err := range errs {
			acts, actsErr := w.Store.Acts(t.Context(), rows[i], 0)
			if (err != nil) != (i == hindered) || actsErr != nil || (len(acts) == 1) != (err == nil) {
				t.Errorf("row %d of %d: %v, with %d acts, %v", i, len(rows), err, len(acts), actsErr)
			}
		}
		if r := w.rows(t, rows[hindered:hindered+1])[0]; r.State != store.StateParked {
			t.Errorf("the row is %s", r.State)
		}
		if errs := w.Store.Requeue(t.Context(), store.Act{Verb: "retry", Who: "ana", Why: "test"}, seen[hindered]); errs[0] != nil {
			t.Errorf("once nothing hinders it: %v", errs[0])
		}
	})
}

// park sets messages aside, and returns the numbers of their rows.
func (w ManyActs[Tx]) park(t *testing.T, n int) (numbers []int64) {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s %d", t.Name(), i)
	}
	marks := Marks(t, w.Store, "shop", ids...)
	rows := make([]store.Row, n)
	for i := range marks {
		marks[i].As = store.Parked
		rows[i] = store.Row{Mark: i, State: store.StateParked, Reason: semel.ReasonPermanent, Message: &semel.Message{Body: []byte("1")}}
	}
	b, _ := Begin(t, w.Store, store.TxOptions{}, marks)
	if r := b.Commit(t.Context(), store.Ending{Rows: rows}); r.Outcome != store.Committed {
		t.Fatalf("%+v", r)
	}
	for after := int64(0); ; {
		all, err := w.Store.Rows(t.Context(), store.RowFilter{States: []store.RowState{store.StateParked}, After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			numbers, after = append(numbers, r.Number), r.Number
		}
		if len(all) == 0 {
			return numbers
		}
	}
}

func (w ManyActs[Tx]) rows(t *testing.T, numbers []int64) []store.StoredRow {
	t.Helper()
	rows, err := w.Store.Rows(t.Context(), store.RowFilter{Numbers: numbers, Limit: len(numbers)})
	if err != nil || len(rows) != len(numbers) {
		t.Fatalf("%d rows, want %d: %v", len(rows), len(numbers), err)
	}
	return rows
}

func (w ManyActs[Tx]) seen(t *testing.T, numbers []int64) (seen []store.RowRevision) {
	t.Helper()
	for _, r := range w.rows(t, numbers) {
		seen = append(seen, r.Seen())
	}
	return seen
}
