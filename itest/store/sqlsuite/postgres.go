package sqlsuite

import (
	"context"
	"fmt"
	"testing"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

// Effects creates the tables of a shop in PostgreSQL: one table of effects without a unique key, and one that refuses a
// second row with the constraint the_name.
var Effects = []string{
	"create table in.effects (name bytea not null)",
	"create index on in.effects using hash (name)",
	"create table in.once (name text constraint the_name primary key)",
	"insert into in.once values ('there')",
}

// Late creates a table in.late whose rows are refused at COMMIT, each with its code.
var Late = []string{
	"create table in.late (code text)",
	"create function in.raises_late() returns trigger language plpgsql as $$ begin raise exception 'late' using errcode = new.code; end $$",
	"create constraint trigger late after insert on in.late deferrable initially deferred for each row execute function in.raises_late()",
}

// RefusedAtCommit checks that an error code that usually means a broken server is a rollback and charged to its message
// if the connection still works.
func RefusedAtCommit[Tx any](t *testing.T, i storetest.Instance[Tx], in func(string) string, code string) {
	marks := Marks(t, i.Store, "", code)
	b, _ := Begin(t, i.Store, store.TxOptions{}, marks)
	must.OK(t, i.Effect(t.Context(), b.Tx(0), code))
	must.OK(t, i.Send(t.Context(), b.Tx(0), in(fmt.Sprintf("insert into in.late values ('%s')", code))))
	r := b.Commit(t.Context(), store.Ending{})
	if r.Outcome != store.NotCommitted || i.Store.IsStoreFault(r.Err) {
		t.Errorf("the commit says %+v", r)
	}
	if v := Asked(t, i.Store, marks...); v[0].Kind != store.Fresh || i.Count(t, code) != 0 {
		t.Errorf("%d effects of a refused batch are left, and the verdict is %s", i.Count(t, code), v[0])
	}
	Works(t, i, marks)
}

// SpoiledConnection checks, with a store of one connection, that a handler's setting that refuses writes costs one
// attempt: the connection is closed.
func SpoiledConnection[Tx any](t *testing.T, i storetest.Instance[Tx]) {
	spoils, next := Marks(t, i.Store, "", "spoils"), Marks(t, i.Store, "", "next")
	b, _ := Begin(t, i.Store, store.TxOptions{}, spoils)
	must.OK(t, i.Send(t.Context(), b.Tx(0), "set session characteristics as transaction read only"))
	committed(t, b)
	if b, _, err := i.Store.Begin(t.Context(), store.TxOptions{}, next); err == nil {
		b.Rollback(t.Context())
		t.Fatal("the situation did not occur: the connection writes")
	}
	b, _, err := i.Store.Begin(t.Context(), store.TxOptions{}, next)
	if err != nil {
		t.Fatalf("the same connection was asked again: %v", err)
	}
	committed(t, b)
}

func committed[Tx any](t testing.TB, b store.Batch[Tx]) {
	t.Helper()
	if r := b.Commit(context.WithoutCancel(t.Context()), store.Ending{}); r.Outcome != store.Committed {
		t.Fatalf("the commit says %+v", r)
	}
}
