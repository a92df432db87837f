package sqlsuite

import (
	"context"
	"fmt"
	"testing"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

// Effects contains the statements that create a test's tables for effects in PostgreSQL. One table of effects has no
// unique key. A second table of effects rejects a second row with the constraint the_name.
var Effects = []string{
	"create table in.effects (name bytea not null)",
	"create index on in.effects using hash (name)",
	"create table in.once (name text constraint the_name primary key)",
	"insert into in.once values ('there')",
}

// Late contains the statements that create the table in.late. COMMIT rejects each row of this table with the error code
// in the row.
var Late = []string{
	"create table in.late (code text)",
	"create function in.raises_late() returns trigger language plpgsql as $$ begin raise exception 'late' using errcode = new.code; end $$",
	"create constraint trigger late after insert on in.late deferrable initially deferred for each row execute function in.raises_late()",
}

// RefusedAtCommit tests an error code that usually means a broken server. If the connection still works, the store must
// report a rollback, and the failure must count as an attempt of the message.
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

// SpoiledConnection tests a handler that makes its connection read-only, with a store of one connection. Only one
// attempt may fail because the connection is read-only, because the store closes the connection.
func SpoiledConnection[Tx any](t *testing.T, i storetest.Instance[Tx]) {
	spoils, next := Marks(t, i.Store, "", "spoils"), Marks(t, i.Store, "", "next")
	b, _ := Begin(t, i.Store, store.TxOptions{}, spoils)
	must.OK(t, i.Send(t.Context(), b.Tx(0), "set session characteristics as transaction read only"))
	commitBatch(t, b)
	if b, _, err := i.Store.Begin(t.Context(), store.TxOptions{}, next); err == nil {
		b.Rollback(t.Context())
		t.Fatal("the situation did not occur: the connection writes")
	}
	b, _, err := i.Store.Begin(t.Context(), store.TxOptions{}, next)
	if err != nil {
		t.Fatalf("the same connection was asked again: %v", err)
	}
	commitBatch(t, b)
}

func commitBatch[Tx any](t testing.TB, b store.Batch[Tx]) {
	t.Helper()
	if r := b.Commit(context.WithoutCancel(t.Context()), store.Ending{}); r.Outcome != store.Committed {
		t.Fatalf("the commit says %+v", r)
	}
}
