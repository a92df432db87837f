package sqlsuite

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/store"
)

// ManyActs is a store that counts its statements.
type ManyActs[Tx any] struct {
	Store interface {
		store.TxStore[Tx]
		store.Inbox
		store.Leases
		store.Leases
		admin.Requeuer
		admin.Resolver
		admin.Lines
	}
	// Statements returns the number of statements so far, including BEGIN and COMMIT.
	Statements func() int64
	// Poison makes each update of an inbox row fail until end is called.
	Poison func(t testing.TB, number int64) (end func())
	// Hold locks a row until end is called. Hold is nil if each writer locks the whole database.
	Hold func(t testing.TB, number int64) (end func())
	// Lose makes each COMMIT succeed but return an error that leaves the outcome open, until end is called. The first
	// error comes from the server, the next from the connection. Lose is nil if a test cannot lose the answer of COMMIT
	// with this driver.
	Lose func() (end func())
}

const (
	// The test changes as many rows as the constant many says, and allows at most mostStatements statements.
	many           = 1000
	mostStatements = 30
)

// Run checks that a store changes many rows with few statements, even if one of these rows cannot be changed.
func (w ManyActs[Tx]) Run(t *testing.T) {
	w.testCommands(t, w.park(t, many))
	w.testLanes(t)
	w.testFailingRow(t, "one_row_that_cannot_be_written_keeps_no_other_from_it", func(ctx context.Context, n int64) (context.Context, func()) {
		return ctx, w.Poison(t, n)
	})
	if w.Lose != nil {
		w.testUnanswered(t, "an_error_of_the_server")
		w.testUnanswered(t, "an_error_of_the_connection")
	}
	if w.Hold != nil {
		w.testFailingRow(t, "one_row_that_is_locked_keeps_no_other_waiting", func(ctx context.Context, n int64) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			end := w.Hold(t, n)
			return ctx, func() { cancel(); end() }
		})
	}
}

// testUnanswered changes rows while the answer of COMMIT is lost. The result must be an unknown outcome, and the
// store must not retry.
func (w ManyActs[Tx]) testUnanswered(t *testing.T, by string) {
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

// testCommands runs every command that does not concern lanes on all rows. At the end the rows are discarded.
func (w ManyActs[Tx]) testCommands(t *testing.T, rows []int64) {
	t.Run("many_rows_take_few_statements", func(t *testing.T) {
		w.act(t, rows, "retry", w.Store.Requeue, store.StateFailedRetryable)
		w.doubt(t, rows)
		w.act(t, rows, "resolve", w.resolves(admin.ResolvedNotDone), store.StateFailedRetryable)
		w.act(t, rows, "suppress", w.Store.Suppress, store.StateParked)
		w.act(t, rows, "discard", w.Store.Discard, store.StateDiscarded)
		w.act(t, rows, "reopen", w.Store.Reopen, store.StateParked)
		w.act(t, rows, "retry", w.Store.Requeue, store.StateFailedRetryable)
		w.doubt(t, rows[:many/2])
		w.act(t, rows[:many/2], "resolve", w.resolves(admin.ResolvedDone), store.StateCompleted)
		w.act(t, rows[many/2:], "discard", w.Store.Discard, store.StateDiscarded)
		acts, err := w.Store.Acts(t.Context(), 0, 10*many)
		if err != nil || len(acts) != 10*len(rows) {
			t.Errorf("%d acts are recorded, want %d: %v", len(acts), 10*len(rows), err)
		}
	})
}

func (w ManyActs[Tx]) resolves(r admin.Resolution) func(context.Context, store.Act, ...store.RowRevision) []error {
	return func(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
		return w.Store.Resolve(ctx, r, a, rows...)
	}
}

// act runs a command on rows, checks the new state of the rows, and checks the number of statements.
func (w ManyActs[Tx]) act(t *testing.T, rows []int64, verb string, do func(context.Context, store.Act, ...store.RowRevision) []error, want store.RowState) {
	t.Helper()
	seen := w.seen(t, rows)
	before := w.Statements()
	if err := errors.Join(do(t.Context(), store.Act{Verb: verb, Who: "ana", Why: "test"}, seen...)...); err != nil {
		t.Fatal(verb, err)
	}
	sent := w.Statements() - before
	t.Logf("%s of %d rows: %d statements", verb, len(rows), sent)
	if sent > mostStatements {
		t.Errorf("%s of %d rows took %d statements, want at most %d", verb, len(rows), sent, mostStatements)
	}
	for _, r := range w.readRows(t, rows) {
		if r.State != want {
			t.Fatalf("after %s row %d is %s", verb, r.Number, r.State)
		}
	}
}

// doubt claims due rows, starts a call for each row, and parks the rows with unknown outcomes.
func (w ManyActs[Tx]) doubt(t *testing.T, rows []int64) {
	t.Helper()
	claimed, err := w.Store.Claim(t.Context(), store.ClaimOptions{Consumer: "billing", Numbers: rows, Token: store.NewToken(), Most: len(rows), Lease: time.Minute})
	if err != nil || len(claimed) != len(rows) {
		t.Fatalf("%d rows are claimed, want %d: %v", len(claimed), len(rows), err)
	}
	claims := make([]store.Claim, len(claimed))
	for i, c := range claimed {
		claims[i] = c.Claim
	}
	must.Get(w.Store.StartCalls(t.Context(), claims, time.Minute))(t)
	w.act(t, rows, "release", w.Store.Release, store.StateReceived)
	w.act(t, rows, "suppress", w.Store.Suppress, store.StateParked)
}

// testLanes skips and discards rows that are each the first row of a lane. After each of the two commands, the
// rows behind the first rows must no longer be blocked.
func (w ManyActs[Tx]) testLanes(t *testing.T) {
	t.Run("many_first_rows_of_lines_take_few_statements", func(t *testing.T) {
		first, behind := w.parkInLines(t, many)
		w.act(t, first[:many/2], "skip", w.Store.Skip, store.StateParked)
		w.act(t, first[many/2:], "discard", w.Store.Discard, store.StateDiscarded)
		for _, r := range w.readRows(t, behind) {
			if r.State != store.StateReceived {
				t.Fatalf("row %d behind another is %s", r.Number, r.State)
			}
		}
		w.act(t, behind, "discard", w.Store.Discard, store.StateDiscarded)
		w.act(t, first[:many/2], "discard", w.Store.Discard, store.StateDiscarded)
	})
}

// testFailingRow runs commands on several rows; one of the rows cannot be changed.
func (w ManyActs[Tx]) testFailingRow(t *testing.T, name string, hinder func(context.Context, int64) (context.Context, func())) {
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
		if r := w.readRows(t, rows[hindered:hindered+1])[0]; r.State != store.StateParked {
			t.Errorf("the row is %s", r.State)
		}
		if errs := w.Store.Requeue(t.Context(), store.Act{Verb: "retry", Who: "ana", Why: "test"}, seen[hindered]); errs[0] != nil {
			t.Errorf("once nothing hinders it: %v", errs[0])
		}
	})
}

// park parks messages, and returns the numbers of their rows.
func (w ManyActs[Tx]) park(t *testing.T, n int) []int64 {
	t.Helper()
	w.enter(t, n, store.StateParked)
	return w.rowNumbers(t, store.StateParked)
}

// parkInLines parks the first message of each of n lanes. In each lane, another message waits behind the parked
// message.
func (w ManyActs[Tx]) parkInLines(t *testing.T, n int) (first, behind []int64) {
	t.Helper()
	w.enter(t, n, store.StateParked, store.StateBlocked)
	return w.rowNumbers(t, store.StateParked), w.rowNumbers(t, store.StateBlocked)
}

// enter writes n lanes of rows with the given states. With a single state, the rows are in no lane.
func (w ManyActs[Tx]) enter(t *testing.T, n int, states ...store.RowState) {
	t.Helper()
	var ids []string
	for i := range n {
		for _, state := range states {
			ids = append(ids, fmt.Sprintf("%s %d %s", t.Name(), i, state))
		}
	}
	marks := Marks(t, w.Store, "shop", ids...)
	rows := make([]store.Row, len(marks))
	for i := range marks {
		state := states[i%len(states)]
		marks[i].As = state.Outcome()
		if len(states) > 1 {
			marks[i].Line = fmt.Appendf(nil, "billing\x00%d", i/len(states))
		}
		rows[i] = store.Row{Mark: i, State: state, Reason: semel.ReasonPermanent, Message: &semel.Message{Body: []byte("1")}}
	}
	b, _ := Begin(t, w.Store, store.TxOptions{}, marks)
	if r := b.Commit(t.Context(), store.Ending{Rows: rows}); r.Outcome != store.Committed {
		t.Fatalf("%+v", r)
	}
}

func (w ManyActs[Tx]) rowNumbers(t *testing.T, state store.RowState) (numbers []int64) {
	t.Helper()
	for after := int64(0); ; {
		all := must.Get(w.Store.Rows(t.Context(), store.RowFilter{States: []store.RowState{state}, After: after}))(t)
		for _, r := range all {
			numbers, after = append(numbers, r.Number), r.Number
		}
		if len(all) == 0 {
			return numbers
		}
	}
}

func (w ManyActs[Tx]) readRows(t *testing.T, numbers []int64) []store.StoredRow {
	t.Helper()
	rows, err := w.Store.Rows(t.Context(), store.RowFilter{Numbers: numbers, Limit: len(numbers)})
	if err != nil || len(rows) != len(numbers) {
		t.Fatalf("%d rows, want %d: %v", len(rows), len(numbers), err)
	}
	return rows
}

func (w ManyActs[Tx]) seen(t *testing.T, numbers []int64) (seen []store.RowRevision) {
	t.Helper()
	for _, r := range w.readRows(t, numbers) {
		seen = append(seen, r.Seen())
	}
	return seen
}
