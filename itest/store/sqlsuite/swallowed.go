package sqlsuite

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/store"
)

// Swallowing is a database that can drop inserts into a table without an error.
type Swallowing[Tx any] struct {
	Store SwallowedStore[Tx]
	// Swallow makes the database drop each insert into one of Semel's tables until end is called. The parameter table
	// is the name of the table without the prefix.
	Swallow func(t testing.TB, table string) (end func())
}

// SwallowedStore has the operations that write rows without reading these rows at once.
type SwallowedStore[Tx any] interface {
	store.TxStore[Tx]
	store.Inbox
	admin.Controls
	admin.Recorder
	admin.Editor
	admin.Auditor
	admin.Results[Tx]
	admin.SchemaChecker
}

// Swallowed checks for every table that a store notices when a trigger or a rule drops the store's writes. The check at
// start must name the trigger or the rule.
func Swallowed[Tx any](t *testing.T, w Swallowing[Tx]) {
	s := w.Store
	by := store.Act{Verb: "discard", Who: "ana", Why: "test"}
	noticed := func(t *testing.T, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "a trigger or a rule prevents the others") || s.Classify(err) != store.ClassDown {
			t.Errorf("nobody noticed: %v", err)
		}
	}
	for _, c := range []struct {
		table, name string
		do          func(t *testing.T, ctx context.Context, r store.StoredRow) error
	}{
		{"acts", "discard", func(t *testing.T, ctx context.Context, r store.StoredRow) error {
			return errors.Join(s.Discard(ctx, by, r.Seen())...)
		}},
		{"acts", "pause", func(t *testing.T, ctx context.Context, r store.StoredRow) error {
			return s.Pause(ctx, "billing", true, by)
		}},
		{"acts", "record", func(t *testing.T, ctx context.Context, r store.StoredRow) error { return s.Record(ctx, by) }},
		{"edits", "edit", func(t *testing.T, ctx context.Context, r store.StoredRow) error {
			return s.Edit(ctx, r.Number, r.Revision, []byte("2"), "", by)
		}},
		{"seals", "seal", func(t *testing.T, ctx context.Context, r store.StoredRow) error {
			must.OK(t, s.Record(ctx, by))
			_, err := s.Seal(ctx, admin.Sealing{})
			return err
		}},
		{"results", "keep a result", func(t *testing.T, ctx context.Context, r store.StoredRow) error {
			return keepSwallowed(t, s, t.Name(), false)
		}},
		{"results", "keep a result at the end", func(t *testing.T, ctx context.Context, r store.StoredRow) error {
			return keepSwallowed(t, s, t.Name(), true)
		}},
		{"inbox", "park", func(t *testing.T, ctx context.Context, r store.StoredRow) error {
			return parkSwallowed(t, s, t.Name(), false)
		}},
		{"inbox", "park a conflict", func(t *testing.T, ctx context.Context, r store.StoredRow) error {
			return parkSwallowed(t, s, t.Name(), true)
		}},
	} {
		t.Run("trap_T145_an_insert_that_is_swallowed_is_noticed/"+c.table+"/"+c.name, func(t *testing.T) {
			r := parkedRow(t, s, t.Name()+" before")
			end := w.Swallow(t, c.table)
			noticed(t, c.do(t, t.Context(), r))
			if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), c.table+" has the ") {
				t.Errorf("the check at start says %v", err)
			}
			end()
			if err := s.Check(t.Context()); err != nil {
				t.Error(err)
			}
			if after, err := s.Rows(t.Context(), store.RowFilter{Numbers: []int64{r.Number}}); err != nil || len(after) != 1 || after[0].Revision != r.Revision {
				t.Errorf("the row has changed: %+v, %v", after, err)
			}
		})
	}
}

func keepSwallowed[Tx any](t *testing.T, s SwallowedStore[Tx], id string, atEnd bool) error {
	mark := Marks(t, s, "shop", id)[0]
	b, _ := Begin(t, s, store.TxOptions{}, []store.Mark{mark})
	defer b.Rollback(t.Context())
	of := admin.ResultOf{Scope: mark.Scope, ID: mark.ID}
	if keeper, able := b.(admin.CommitResultWriter); able && atEnd {
		keeper.WriteResultAtCommit(of, []byte("result"))
	} else if err := s.KeepResult(t.Context(), b.Tx(0), of, []byte("result")); err != nil {
		return err
	}
	return commitError(b, store.Ending{})
}

func parkSwallowed[Tx any](t *testing.T, s SwallowedStore[Tx], id string, conflict bool) error {
	mark := Marks(t, s, "shop", id)[0]
	mark.Fingerprint = semel.Fingerprint{Version: 1, Sum: [16]byte{1}}
	if !conflict {
		mark.As = store.Parked
	}
	b, _ := Begin(t, s, store.TxOptions{}, []store.Mark{mark})
	defer b.Rollback(t.Context())
	return commitError(b, store.Ending{Rows: []store.Row{{Conflict: conflict, State: store.StateParked, Message: &semel.Message{Body: []byte("1")}}}})
}

// commitError commits a batch, and returns nil if the batch was committed, otherwise the error.
func commitError[Tx any](b store.Batch[Tx], e store.Ending) error {
	r := b.Commit(context.Background(), e)
	if r.Err != nil && r.Culprit != store.NoCulprit {
		r.Err = errors.New("a message is to blame for what the database swallowed")
	}
	return r.Err
}

// parkedRow parks a message in a batch and returns its row.
func parkedRow[Tx any](t *testing.T, s SwallowedStore[Tx], id string) store.StoredRow {
	t.Helper()
	mark := Marks(t, s, "shop", id)[0]
	mark.As = store.Parked
	b, _ := Begin(t, s, store.TxOptions{}, []store.Mark{mark})
	if r := b.Commit(t.Context(), store.Ending{Rows: []store.Row{{State: store.StateParked, Message: &semel.Message{Body: []byte("1")}}}}); r.Outcome != store.Committed {
		t.Fatalf("%+v", r)
	}
	all, err := s.Rows(t.Context(), store.RowFilter{})
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	return all[len(all)-1]
}
