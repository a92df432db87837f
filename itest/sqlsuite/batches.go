// Package sqlsuite holds what the suites of the SQL stores have in common: how
// they mark, write and look, whatever the driver, and the cases that read the same
// for each of them.
package sqlsuite

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/storetest"
)

// Marks are marks of the consumer "billing", which say applied.
func Marks[Tx any](t testing.TB, s contract.TxStore[Tx], source string, ids ...string) []contract.Mark {
	t.Helper()
	scope, err := s.Scope(context.WithoutCancel(t.Context()), "billing", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]contract.Mark, len(ids))
	for i, id := range ids {
		all[i] = contract.Mark{Scope: scope, Consumer: "billing", Source: source, ID: []byte(id), As: contract.Applied}
	}
	return all
}

// Begin opens a batch.
func Begin[Tx any](t testing.TB, s contract.TxStore[Tx], o contract.TxOptions, marks []contract.Mark) (contract.Batch[Tx], []contract.Verdict) {
	t.Helper()
	b, v, err := s.Begin(t.Context(), o, marks)
	if err != nil {
		t.Fatal(err)
	}
	return b, v
}

// Asked are the verdicts on marks that leave no trace.
func Asked[Tx any](t testing.TB, s contract.TxStore[Tx], marks ...contract.Mark) []contract.Verdict {
	t.Helper()
	b, v := Begin(t, s, contract.TxOptions{}, marks)
	b.Rollback(t.Context())
	return v
}

// Attempt is one batch with an effect for each fresh mark.
func Attempt[Tx any](t testing.TB, i storetest.Instance[Tx], marks []contract.Mark) (contract.Result, []contract.Verdict, error) {
	t.Helper()
	b, v, err := i.Store.Begin(t.Context(), contract.TxOptions{}, marks)
	if err != nil {
		return contract.Result{}, nil, err
	}
	for n := range marks {
		if v[n].Kind != contract.Fresh {
			continue
		}
		if err := i.Effect(t.Context(), b.Tx(n), string(marks[n].ID)); err != nil {
			b.Rollback(t.Context())
			return contract.Result{}, v, err
		}
	}
	return b.Commit(t.Context(), contract.Ending{}), v, nil
}

// Works checks that the marks are applied once, now that the fault is over.
func Works[Tx any](t testing.TB, i storetest.Instance[Tx], marks []contract.Mark) {
	t.Helper()
	for range 2 {
		if r, _, err := Attempt(t, i, marks); err != nil || r.Outcome != contract.Committed {
			t.Fatalf("after the fault: %+v, %v", r, err)
		}
	}
	for _, m := range marks {
		if n := i.Count(t, string(m.ID)); n != 1 {
			t.Errorf("%d effects of %s, want 1", n, m.ID)
		}
	}
}

// Is checks an error's class and that it says what it should.
func Is[Tx any](t testing.TB, s contract.TxStore[Tx], err error, class contract.Class, says string) {
	t.Helper()
	if err == nil {
		t.Fatal("there is no error")
	}
	if c := s.Classify(err); c != class || !strings.Contains(err.Error(), says) {
		t.Errorf("%v is of class %v, want %v and that it says %q", err, c, class, says)
	}
}

// Unknown checks that nobody claims to know what became of a commit.
func Unknown(t testing.TB, r contract.Result) {
	t.Helper()
	if r.Outcome != contract.CommitUnknown || r.Class != contract.ClassDown || r.Culprit != contract.NoCulprit || r.Err == nil {
		t.Errorf("the commit says %+v, want unknown", r)
	}
}

// Refused checks that a schema was refused, and with what remedy.
func Refused(t testing.TB, err error, says string) {
	t.Helper()
	if !errors.Is(err, semel.ErrSchema) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want ErrSchema that says %q", err, says)
	}
}
