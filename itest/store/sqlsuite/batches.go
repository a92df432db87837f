// Package sqlsuite contains the common parts of the test suites of the SQL stores: helpers that write and read with
// every driver, and test cases that are the same for all SQL stores.
package sqlsuite

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

// Marks returns the markers to write for messages of the consumer "billing", with the outcome applied.
func Marks[Tx any](t testing.TB, s store.TxStore[Tx], source string, ids ...string) []store.Mark {
	t.Helper()
	scope := must.Get(s.Scope(context.WithoutCancel(t.Context()), "billing", source, 0))(t)
	all := make([]store.Mark, len(ids))
	for i, id := range ids {
		all[i] = store.Mark{Scope: scope, Consumer: "billing", Source: source, ID: []byte(id), As: store.Applied}
	}
	return all
}

// Begin opens a batch and fails the test if that is not possible.
func Begin[Tx any](t testing.TB, s store.TxStore[Tx], o store.TxOptions, marks []store.Mark) (store.Batch[Tx], []store.Verdict) {
	t.Helper()
	b, v, err := s.Begin(t.Context(), o, marks)
	must.OK(t, err)
	return b, v
}

// Asked asks the store whether messages are new, duplicates or conflicts, returns the answers, and rolls back.
func Asked[Tx any](t testing.TB, s store.TxStore[Tx], marks ...store.Mark) []store.Verdict {
	t.Helper()
	b, v := Begin(t, s, store.TxOptions{}, marks)
	b.Rollback(t.Context())
	return v
}

// Attempt runs one batch that writes an effect for each message that is new.
func Attempt[Tx any](t testing.TB, i storetest.Instance[Tx], marks []store.Mark) (store.Result, []store.Verdict, error) {
	t.Helper()
	b, v, err := i.Store.Begin(t.Context(), store.TxOptions{}, marks)
	if err != nil {
		return store.Result{}, nil, err
	}
	for n := range marks {
		if v[n].Kind != store.Fresh {
			continue
		}
		if err := i.Effect(t.Context(), b.Tx(n), string(marks[n].ID)); err != nil {
			b.Rollback(t.Context())
			return store.Result{}, v, err
		}
	}
	return b.Commit(t.Context(), store.Ending{}), v, nil
}

// Works checks, after the end of a fault, that a new attempt applies the messages once.
func Works[Tx any](t testing.TB, i storetest.Instance[Tx], marks []store.Mark) {
	t.Helper()
	for range 2 {
		if r, _, err := Attempt(t, i, marks); err != nil || r.Outcome != store.Committed {
			t.Fatalf("after the fault: %+v, %v", r, err)
		}
	}
	for _, m := range marks {
		if n := i.Count(t, string(m.ID)); n != 1 {
			t.Errorf("%d effects of %s, want 1", n, m.ID)
		}
	}
}

// Is checks the class and the text of an error.
func Is[Tx any](t testing.TB, s store.TxStore[Tx], err error, class store.Class, says string) {
	t.Helper()
	if err == nil {
		t.Fatal("there is no error")
	}
	if c := s.Classify(err); c != class || !strings.Contains(err.Error(), says) {
		t.Errorf("%v is of class %v, want %v and that it says %q", err, c, class, says)
	}
}

// Unknown checks that a commit is reported with an unknown outcome.
func Unknown(t testing.TB, r store.Result) {
	t.Helper()
	if r.Outcome != store.CommitUnknown || r.Class != store.ClassDown || r.Culprit != store.NoCulprit || r.Err == nil {
		t.Errorf("the commit says %+v, want unknown", r)
	}
}

// Refused checks that the store rejected a schema, and that the error names a remedy.
func Refused(t testing.TB, err error, says string) {
	t.Helper()
	if !errors.Is(err, semel.ErrSchema) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want ErrSchema that says %q", err, says)
	}
}
