package operate

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	"modernc.org/sqlite"
)

// countingConnector opens SQLite connections that count all statements, including BEGIN and COMMIT.
type countingConnector struct {
	path string
	n    *atomic.Int64
}

func (c countingConnector) Driver() driver.Driver { return &sqlite.Driver{} }

func (c countingConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.Driver().Open("file:" + c.path + "?_pragma=foreign_keys(1)&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return nil, err
	}
	return countingConn{conn.(sqliteConn), c.n}, nil
}

type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	driver.ConnPrepareContext
	driver.Validator
	driver.SessionResetter
}

type countingConn struct {
	sqliteConn
	n *atomic.Int64
}

func (c countingConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.n.Add(2) // count BEGIN, and the later COMMIT or ROLLBACK
	return c.sqliteConn.BeginTx(ctx, o)
}

func (c countingConn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	c.n.Add(1)
	return c.sqliteConn.ExecContext(ctx, q, args)
}

func (c countingConn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	c.n.Add(1)
	return c.sqliteConn.QueryContext(ctx, q, args)
}

func TestAnOrderOfAThousandRowsTakesFewStatements(t *testing.T) {
	const rows, most = 1000, 50
	var sent atomic.Int64
	db := sql.OpenDB(countingConnector{filepath.Join(t.TempDir(), "shop.db"), &sent})
	defer db.Close()
	s, err := sqlstore.SQLite(db, sqlstore.Options{})
	if err == nil {
		_, err = s.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	scope, err := s.Scope(t.Context(), "billing", "shop", 0)
	if err != nil {
		t.Fatal(err)
	}
	park := func(name string, sum byte, conflict bool) {
		t.Helper()
		var marks []store.Mark
		var kept []store.Row
		for i := range rows {
			marks = append(marks, store.Mark{Scope: scope, ID: fmt.Appendf(nil, "%s-%d", name, i), As: store.Parked, Fingerprint: semel.Fingerprint{Version: 1, Sum: [16]byte{sum}}})
			kept = append(kept, store.Row{Mark: i, State: store.StateParked, Conflict: conflict, Reason: semel.ReasonPermanent, Message: &semel.Message{Body: []byte("1")}})
		}
		b, _, err := s.Begin(t.Context(), store.TxOptions{}, marks)
		if err != nil {
			t.Fatal(err)
		}
		if r := b.Commit(t.Context(), store.Ending{Rows: kept}); r.Outcome != store.Committed {
			t.Fatalf("%+v", r)
		}
	}
	run := func(name string, verb admin.Verb, states []store.RowState, want map[string]int) {
		t.Helper()
		before, got := sent.Load(), map[string]int{}
		for r, err := range (Box{Store: "shop", Inbox: s, Requeuer: s, Resolver: s, Lines: s}).Carry(t.Context(), Order{Verb: verb, Filter: store.RowFilter{States: states}, Outcome: admin.ResolvedDone, Who: "ana", Why: "test"}) {
			if err != nil {
				t.Fatal(err)
			}
			got[r.Result]++
		}
		if n := sent.Load() - before; n > most {
			t.Errorf("%s: %d statements for %d rows, want at most %d", name, n, rows, most)
		} else {
			t.Logf("%s: %d statements", name, n)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	parked, waiting := []store.RowState{store.StateParked}, []store.RowState{store.StateFailedRetryable}
	park("a", 1, false)
	run("retry", admin.Retry, parked, map[string]int{Due: rows})
	run("retry of what is due", admin.Retry, waiting, map[string]int{Due: rows})
	park("a", 2, true)
	run("retry of conflicts", admin.Retry, parked, map[string]int{Left: rows})
	run("discard", admin.Discard, parked, map[string]int{Done: rows})
	claimed, err := s.Claim(t.Context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: rows, Lease: time.Minute})
	if err != nil || len(claimed) != rows {
		t.Fatal(len(claimed), err)
	}
	claims := make([]store.Claim, rows)
	for i, c := range claimed {
		claims[i] = c.Claim
	}
	if _, err := s.StartCalls(t.Context(), claims, time.Minute); err != nil {
		t.Fatal(err)
	}
	run("skip of rows that are in no line", admin.Skip, []store.RowState{store.StateInProgress}, map[string]int{Refused: rows})
	run("release", admin.Release, []store.RowState{store.StateInProgress}, map[string]int{Done: rows})
	run("suppress", admin.Suppress, []store.RowState{store.StateReceived}, map[string]int{Done: rows})
	run("retry of what was suppressed", admin.Retry, parked, map[string]int{Refused: rows})
	run("resolve", admin.Resolve, parked, map[string]int{Done: rows})
	run("reopen of conflicts with what is applied", admin.Reopen, []store.RowState{store.StateDiscarded}, map[string]int{Refused: rows})
	park("b", 1, false)
	run("discard", admin.Discard, parked, map[string]int{Done: rows})
	run("reopen", admin.Reopen, []store.RowState{store.StateDiscarded}, map[string]int{Done: rows, Refused: rows})
}
