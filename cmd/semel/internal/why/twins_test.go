package why

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
	_ "modernc.org/sqlite"
)

// openExplained returns a store in a file. When the test ends, openExplained checks that every identity in the store
// has an explanation.
func openExplained(t testing.TB) storetest.Instance[*sql.Tx] {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)&_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(off)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqlstore.SQLite(db, sqlstore.Options{})
	if err == nil {
		_, err = store.Migrate(t.Context())
	}
	if err == nil {
		_, err = db.Exec("create table effects (name blob)")
	}
	if err != nil {
		t.Fatal(err)
	}
	search := Search{Store: store, Box: operate.Box{Store: "shop", Inbox: store, Requeuer: store, Resolver: store, Markers: store, Streams: store, Lines: store}}
	return storetest.Instance[*sql.Tx]{
		Store: store,
		Effect: func(ctx context.Context, tx *sql.Tx, name string) error {
			_, err := tx.ExecContext(ctx, "insert into effects values (?)", []byte(name))
			return err
		},
		Count: func(t testing.TB, name string) (n int) {
			if err := db.QueryRow("select count(*) from effects where name = ?", []byte(name)).Scan(&n); err != nil {
				t.Error(err)
			}
			return n
		},
		Says: func(t testing.TB, id string, is storetest.Twins) { checkExplanation(t, search, id, is) },
		Agrees: func(t testing.TB) {
			found, err := store.Denials(t.Context(), "billing", 0, 10_000)
			if err != nil || len(found.Denied) > 0 || found.Rows == 0 {
				t.Errorf("the deep check compared %d rows and found %+v, %v", found.Rows, found.Denied, err)
			}
		},
	}
}

// checkExplanation compares the explanation of an identity with what happened in the test.
func checkExplanation(t testing.TB, search Search, id string, is storetest.Twins) {
	t.Helper()
	all, _, err := search.Find(t.Context(), "billing", id)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d identities, %v", len(all), err)
	}
	want := No
	switch {
	case is.Applied:
		want = Yes
	case is.Unknown:
		want = Unknown
	}
	a := Explain(all[0])
	if a.Applied != want || a.Stage == StageBroken || strings.Contains(a.Says, "another program changed") {
		t.Errorf("%s: applied %q, %s; want %q: %s", id, a.Applied, a.Stage, want, a.Says)
	}
	states := map[int64]store.RowState{}
	for _, r := range all[0].Rows() {
		states[r.Number] = r.State
	}
	for i := range all[0].Details {
		if first := all[0].Details[i].FirstContent; first != nil && (first.Outcome == "applied") != (states[first.Row] == store.StateCompleted) {
			t.Errorf("%s: a row shows its first content as %+v, whose row is %s", id, first, states[first.Row])
		}
	}
	if is.Owner != 0 && a.Stage != StageApplied {
		t.Errorf("%s: row %d took effect, and it is %s: %s", id, is.Owner, a.Stage, a.Says)
	}
}

func TestExplainTwoRowsOfOneIdentity(t *testing.T) {
	storetest.Run(t, storetest.Harness[*sql.Tx]{
		Open: openExplained,
		Can:  storetest.Abilities{Inbox: true, Leases: true, Calls: true, Steps: true, Streams: true, Lines: true, Edits: true, OneWriter: true},
		Only: func(name string) bool { return strings.HasPrefix(name, "law_16_every_pair") },
	})
}
