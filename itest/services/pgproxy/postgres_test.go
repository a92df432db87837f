package pgproxy

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
)

// world is a server with a table of markers, and connections to the server: some direct, and some through a proxy.
type world struct {
	t      *testing.T
	ctx    context.Context
	dsn    string
	proxy  *Proxy
	direct *pgx.Conn
}

func newWorld(t *testing.T, dsn string) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	services.Exec(t, dsn, "create table markers (id int primary key)", "create table effects (id int)")
	w := &world{t: t, ctx: ctx, dsn: dsn, proxy: Start(t, dsn)}
	w.direct = w.connect(dsn)
	return w
}

func (w *world) connect(dsn string) *pgx.Conn {
	w.t.Helper()
	c := must.Get(pgx.Connect(w.ctx, dsn))(w.t)
	w.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// beginMarked begins a transaction through the proxy and inserts the marker of id 1.
func (w *world) beginMarked() pgx.Tx {
	w.t.Helper()
	tx, err := w.connect(w.proxy.DSN()).Begin(w.ctx)
	if err == nil {
		_, err = tx.Exec(w.ctx, "insert into markers values ($1)", 1)
	}
	must.OK(w.t, err)
	return tx
}

// count returns the number of rows of a table, over a connection that count opens itself.
func (w *world) count(table string) int {
	w.t.Helper()
	var n int
	must.OK(w.t, w.direct.QueryRow(w.ctx, "select count(*) from "+table).Scan(&n))
	return n
}

func (w *world) want(table string, n int) {
	w.t.Helper()
	if got := w.count(table); got != n {
		w.t.Errorf("there are %d rows in %s, want %d", got, table, n)
	}
}

// markAgain resolves an unknown commit: it inserts the marker of id 1 again and reports whether the marker is new.
// markAgain waits up to lockTimeout for a transaction that is still open.
func (w *world) markAgain(lockTimeout string) (fresh bool, err error) {
	w.t.Helper()
	err = pgx.BeginFunc(w.ctx, w.direct, func(tx pgx.Tx) error {
		if _, err := tx.Exec(w.ctx, "set local lock_timeout = '"+lockTimeout+"'"); err != nil {
			return err
		}
		tag, err := tx.Exec(w.ctx, "insert into markers values (1) on conflict do nothing")
		fresh = tag.RowsAffected() == 1
		return err
	})
	return fresh, err
}

func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func TestACommitWhoseReplyIsLost(t *testing.T) {
	t.Run("trap_89_the_reply_is_lost_and_marking_again_finds_the_marker", func(t *testing.T) {
		w := newWorld(t, services.Postgres(t))
		tx := w.beginMarked()
		w.proxy.CutReply(Commit)
		if err := tx.Commit(w.ctx); err == nil {
			t.Fatal("a commit without a reply succeeded")
		}
		if fresh, err := w.markAgain("10s"); fresh || err != nil {
			t.Errorf("markAgain returned fresh %v (%v), want seen", fresh, err)
		}
	})
	t.Run("trap_91_the_driver_calls_it_safe_to_retry_although_it_committed", func(t *testing.T) {
		w := newWorld(t, services.Postgres(t))
		tx := w.beginMarked()
		w.proxy.CutReply(Commit)
		err := tx.Commit(w.ctx)
		if err == nil || code(err) != "" || errors.Is(err, pgx.ErrTxCommitRollback) {
			t.Errorf("the commit returned %v, want an error that the server did not send", err)
		}
		w.want("markers", 1)
		// If pgconn.SafeToRetry returns false here, the driver has changed its behaviour: update the code that relies
		// on SafeToRetry.
		if !pgconn.SafeToRetry(err) {
			t.Errorf("SafeToRetry(%v) is false; it was true up to pgx 5.12", err)
		}
	})
}

func TestACommitWhoseRequestIsLost(t *testing.T) {
	t.Run("trap_90_the_transaction_is_aborted_and_the_marker_is_fresh", func(t *testing.T) {
		w := newWorld(t, services.Postgres(t))
		tx := w.beginMarked()
		var id string
		must.OK(t, tx.QueryRow(w.ctx, "select pg_current_xact_id()::text").Scan(&id))
		w.proxy.CutRequest(Commit)
		if err := tx.Commit(w.ctx); err == nil {
			t.Fatal("a commit that was never sent succeeded")
		}
		if fresh, err := w.markAgain("10s"); !fresh || err != nil {
			t.Errorf("markAgain returned fresh %v (%v), want fresh", fresh, err)
		}
		var status string
		if err := w.direct.QueryRow(w.ctx, "select pg_xact_status($1::text::xid8)", id).Scan(&status); err != nil || status != "aborted" {
			t.Errorf("the transaction is %q (%v), want aborted", status, err)
		}
	})
}

func TestWhatDatabaseSQLRepeatsByItself(t *testing.T) {
	open := func(t *testing.T) (*world, *sql.DB) {
		w := newWorld(t, services.Postgres(t))
		db := must.Get(sql.Open("pgx", w.proxy.DSN()))(t)
		t.Cleanup(func() { _ = db.Close() })
		w.proxy.CutReply(Nth(1, Containing("insert")))
		return w, db
	}
	t.Run("trap_92_a_statement_without_arguments_in_autocommit_is_repeated_without_an_error", func(t *testing.T) {
		w, db := open(t)
		must.OK(t, db.PingContext(w.ctx))
		if _, err := db.ExecContext(w.ctx, "insert into effects values (1)"); err != nil {
			t.Errorf("the statement returned %v; up to pgx 5.12 the driver repeats it and succeeds", err)
		}
		w.want("effects", 2)
	})
	t.Run("trap_92_a_statement_in_a_transaction_is_not_repeated", func(t *testing.T) {
		w, db := open(t)
		tx := must.Get(db.BeginTx(w.ctx, nil))(t)
		if _, err := tx.ExecContext(w.ctx, "insert into effects values (1)"); err == nil {
			t.Error("a statement without a reply succeeded")
		}
		if err := tx.Commit(); err == nil {
			t.Error("the transaction's commit succeeded")
		}
		w.want("effects", 0)
	})
}

func TestTheContextOfACommit(t *testing.T) {
	t.Run("trap_94_a_context_that_is_over_before_writes_nothing", func(t *testing.T) {
		w := newWorld(t, services.Postgres(t))
		tx := w.beginMarked()
		rule := w.proxy.CutRequest(Commit)
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		if err := tx.Commit(ctx); err == nil {
			t.Error("the commit succeeded")
		}
		if fresh, err := w.markAgain("10s"); !fresh || err != nil || rule.Hits() != 0 {
			t.Errorf("markAgain returned fresh %v (%v) after %d requests to commit, want fresh after none", fresh, err, rule.Hits())
		}
	})
	t.Run("trap_94_a_context_that_ends_in_flight_is_an_error_of_a_commit_that_happened", func(t *testing.T) {
		w := newWorld(t, services.Postgres(t))
		tx := w.beginMarked()
		rule := w.proxy.HoldReply(Commit)
		ctx, cancel := context.WithCancel(w.ctx)
		said := make(chan error, 1)
		go func() { said <- tx.Commit(ctx) }()
		must.OK(t, rule.Wait(w.ctx))
		cancel()
		if err := <-said; !errors.Is(err, context.Canceled) {
			t.Errorf("the commit returned %v, want a context error", err)
		}
		w.want("markers", 1)
	})
	t.Run("trap_94_a_commit_without_the_callers_cancellation_says_the_truth", func(t *testing.T) {
		w := newWorld(t, services.Postgres(t))
		tx := w.beginMarked()
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		own, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer stop()
		if err := tx.Commit(own); err != nil {
			t.Error(err)
		}
		w.want("markers", 1)
	})
}

func TestACommitOfATransactionThatFailed(t *testing.T) {
	// failed begins a transaction in which the handler has ignored an SQL error.
	failed := func(w *world) (pgx.Tx, *[]string) {
		tx := w.beginMarked()
		if _, err := tx.Exec(w.ctx, "insert into markers values ($1)", 1); code(err) != "23505" {
			w.t.Fatalf("the second insert returned %v, want a duplicate key", err)
		}
		tags := &[]string{}
		w.proxy.Watch(func(m Message) {
			if m.Direction == Reply {
				*tags = append(*tags, m.Tag)
			}
		})
		return tx, tags
	}
	t.Run("trap_95_on_the_wire_it_succeeds_and_only_its_tag_says_rollback", func(t *testing.T) {
		w := newWorld(t, services.Postgres(t))
		tx, tags := failed(w)
		r := tx.Conn().PgConn().Exec(w.ctx, "commit")
		all, err := r.ReadAll()
		if err != nil || len(all) != 1 || all[0].CommandTag.String() != "ROLLBACK" {
			t.Errorf("the commit returned %v (%v), want success and the tag ROLLBACK", all, err)
		}
		if !slices.Equal(*tags, []string{"ROLLBACK"}) {
			t.Errorf("the proxy saw %q, want ROLLBACK", *tags)
		}
		w.want("markers", 0)
	})
	t.Run("trap_95_the_driver_reads_the_tag_and_says_so", func(t *testing.T) {
		w := newWorld(t, services.Postgres(t))
		tx, _ := failed(w)
		if err := tx.Commit(w.ctx); !errors.Is(err, pgx.ErrTxCommitRollback) {
			t.Errorf("the commit returned %v, want %v", err, pgx.ErrTxCommitRollback)
		}
		w.want("markers", 0)
	})
}

func TestRoundTripsOfTheDriverAreCounted(t *testing.T) {
	for _, through := range []string{"PostgreSQL", "PgBouncer"} {
		t.Run("through "+through, func(t *testing.T) {
			direct, pooled := services.Pooled(t)
			w := newWorld(t, direct)
			dsn := w.proxy.DSN()
			if through == "PgBouncer" {
				must.OK(t, w.proxy.Redirect(pooled))
				dsn += "&default_query_exec_mode=exec"
			}
			c := w.connect(dsn)
			batch := func() {
				b := &pgx.Batch{}
				b.Queue("begin")
				for i := range 10 {
					b.Queue("insert into effects values ($1)", i)
				}
				b.Queue("commit")
				must.OK(t, c.SendBatch(w.ctx, b).Close())
			}
			batch()
			w.proxy.ResetCounts()
			w.proxy.Latency(0, time.Millisecond)
			batch()
			if n := w.proxy.Counts(); n.RoundTrips != 1 || n.Statements != 12 {
				t.Errorf("a prepared batch of 12 statements: %+v, want 1 round trip and 12 statements", n)
			}
			must.Get(c.Exec(w.ctx, "select 1; select 2", pgx.QueryExecModeSimpleProtocol))(t)
			if n := w.proxy.Counts(); n.RoundTrips != 2 || n.Statements != 14 {
				t.Errorf("with a query of two statements: %+v, want 2 round trips and 14 statements", n)
			}
			w.want("effects", 20)
		})
	}
}

func TestACommitInAPipelineIsCutInEitherDirection(t *testing.T) {
	for cut, want := range map[string]int{"request": 0, "reply": 1} {
		t.Run(cut, func(t *testing.T) {
			w := newWorld(t, services.Postgres(t))
			c := w.connect(w.proxy.DSN())
			if cut == "request" {
				w.proxy.CutRequest(Commit)
			} else {
				w.proxy.CutReply(Commit)
			}
			b := &pgx.Batch{}
			b.Queue("begin")
			b.Queue("insert into markers values ($1)", 1)
			b.Queue("commit")
			if err := c.SendBatch(w.ctx, b).Close(); err == nil {
				t.Error("the batch succeeded")
			}
			if fresh, err := w.markAgain("10s"); err != nil || fresh == (want == 1) {
				t.Errorf("markAgain returned fresh %v (%v)", fresh, err)
			}
		})
	}
}

func TestARequestToCancelReachesTheServer(t *testing.T) {
	w := newWorld(t, services.Postgres(t))
	c := w.connect(w.proxy.DSN())
	started := make(chan struct{})
	w.proxy.Watch(func(m Message) {
		if m.Direction == Request && strings.Contains(m.SQL, "pg_sleep") {
			close(started)
		}
	})
	said := make(chan error, 1)
	go func() {
		_, err := c.Exec(w.ctx, "select pg_sleep(50)", pgx.QueryExecModeSimpleProtocol)
		said <- err
	}()
	<-started
	for {
		must.OK(t, c.PgConn().CancelRequest(w.ctx))
		select {
		case err := <-said:
			if code(err) != "57014" {
				t.Errorf("the statement returned %v, want that it was cancelled", err)
			}
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
