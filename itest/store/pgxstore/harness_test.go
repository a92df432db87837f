package pgxstore

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// scope returns the id under which the store keeps the markers of the tests' consumer and source.
func (h *fixture) scope(t testing.TB) int64 {
	t.Helper()
	n, err := h.Scope(t.Context(), "billing", "shop", 0)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (h *fixture) makeMarks(t testing.TB, ids ...string) []store.Mark {
	t.Helper()
	return sqlsuite.Marks[pgx.Tx](t, h.Store, "shop", ids...)
}

func makeIDs(first, last int) (ids []string) {
	for i := first; i < last; i++ {
		ids = append(ids, fmt.Sprint(i))
	}
	return ids
}

// form is a way in which handlers write their effects: with one statement at a time, or with queued statements.
type form struct {
	name string
	// deliver applies the new messages of a batch and returns the result of the commit.
	deliver func(t testing.TB, h *fixture, ids []string) store.Result
	// deliverUnder is like deliver, but commits with another context.
	deliverUnder func(t testing.TB, h *fixture, commit context.Context, ids ...string) store.Result
}

func forms() []form {
	return []form{{"handle", deliverDirect, deliverDirectUnder}, {"queue", deliverQueued, deliverQueuedUnder}}
}

func cancelledContext(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func deliverDirect(t testing.TB, h *fixture, ids []string) store.Result {
	t.Helper()
	return deliverDirectUnder(t, h, t.Context(), ids...)
}

func deliverDirectUnder(t testing.TB, h *fixture, commit context.Context, ids ...string) store.Result {
	t.Helper()
	b, v := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, ids...))
	for i := range v {
		if v[i].Kind == store.Fresh {
			if _, err := b.Tx(i).Exec(t.Context(), h.inSchema(insert), []byte(ids[i])); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Commit(commit, store.Ending{})
}

func deliverQueued(t testing.TB, h *fixture, ids []string) store.Result {
	t.Helper()
	return deliverQueuedUnder(t, h, t.Context(), ids...)
}

func deliverQueuedUnder(t testing.TB, h *fixture, commit context.Context, ids ...string) store.Result {
	t.Helper()
	b, v := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, h.makeMarks(t, ids...))
	for i := range v {
		if v[i].Kind == store.Fresh {
			b.Tx(i).ExecOne(h.inSchema(insert), []byte(ids[i]))
		}
	}
	return b.Commit(commit, store.Ending{})
}

// wantApplied checks that each of the given messages has exactly one effect and a marker.
func (h *fixture) wantApplied(t testing.TB, ids ...string) {
	t.Helper()
	v := sqlsuite.Asked[pgx.Tx](t, h.Store, h.makeMarks(t, ids...)...)
	for i, id := range ids {
		if n := h.count(t, id); n != 1 || !v[i].Already(store.Applied) {
			t.Errorf("message %s has %d effects and the verdict %d", id, n, v[i].Kind)
		}
	}
}

// wantNothing checks that the given messages have no effect and no marker.
func (h *fixture) wantNothing(t testing.TB, ids ...string) {
	t.Helper()
	v := sqlsuite.Asked[pgx.Tx](t, h.Store, h.makeMarks(t, ids...)...)
	for i, id := range ids {
		if n := h.count(t, id); n != 0 || v[i].Kind != store.Fresh {
			t.Errorf("message %s has %d effects and the verdict %d", id, n, v[i].Kind)
		}
	}
}

// wantRefused checks that nothing was committed, and checks the error class and the number of the message
// that caused the error.
func wantRefused(t testing.TB, r store.Result, class store.Class, culprit int) {
	t.Helper()
	if r.Outcome != store.NotCommitted || r.Class != class || r.Culprit != culprit || r.Err == nil {
		t.Errorf("the commit says %+v, want not committed, class %d, culprit %d", r, class, culprit)
	}
}

// wantCommitted checks that the batch was committed.
func wantCommitted(t testing.TB, r store.Result) {
	t.Helper()
	if r.Outcome != store.Committed {
		t.Errorf("the commit says %+v", r)
	}
}
