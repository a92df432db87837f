package pgxstore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/store"
)

// cutting returns two stores on the same tables: the store through, which uses connections through the proxy, and the
// store straight, which uses direct connections.
func cutting(t *testing.T) (through, straight *fixture, proxy *pgproxy.Proxy) {
	t.Helper()
	dsn := services.Postgres(t)
	proxy = pgproxy.Start(t, dsn)
	straight = newFixture(t, openPool(t, dsn))
	through = straight.withPool(t, openPool(t, proxy.DSN()))
	through.scope(t)
	return through, straight, proxy
}

func TestCommitsOfUnknownOutcome(t *testing.T) {
	t.Run("trap_89_a_lost_reply_to_commit_is_unknown_and_marking_again_tells", func(t *testing.T) {
		for _, f := range forms() {
			h, straight, proxy := cutting(t)
			rule := proxy.CutReply(pgproxy.Commit)
			sqlsuite.Unknown(t, f.deliver(t, h, makeIDs(0, 10)))
			if rule.Hits() != 1 {
				t.Fatalf("%s: the proxy cut %d replies", f.name, rule.Hits())
			}
			straight.wantApplied(t, makeIDs(0, 10)...)
		}
	})
	t.Run("trap_90_a_lost_request_to_commit_is_unknown_and_marking_again_tells", func(t *testing.T) {
		for _, f := range forms() {
			h, straight, proxy := cutting(t)
			proxy.CutRequest(pgproxy.Commit)
			sqlsuite.Unknown(t, f.deliver(t, h, makeIDs(0, 10)))
			straight.wantNothing(t, makeIDs(0, 10)...)
		}
	})
	t.Run("trap_T29_a_commit_in_flight_is_waited_for_by_whoever_marks_again", func(t *testing.T) {
		h, straight, proxy := cutting(t)
		held := proxy.HoldReply(pgproxy.Commit)
		ctx, cancel := context.WithCancel(t.Context())
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "a"))
		if _, err := b.Tx(0).Exec(t.Context(), h.inSchema(insert), []byte("a")); err != nil {
			t.Fatal(err)
		}
		go func() {
			_ = held.Wait(t.Context())
			cancel()
		}()
		sqlsuite.Unknown(t, b.Commit(ctx, store.Ending{}))
		held.Remove()
		straight.wantApplied(t, "a")
	})
	t.Run("trap_91_what_the_driver_calls_safe_to_retry_was_committed", func(t *testing.T) {
		h, straight, proxy := cutting(t)
		proxy.CutReply(pgproxy.Commit)
		r := deliverDirect(t, h, []string{"a"})
		sqlsuite.Unknown(t, r)
		straight.wantApplied(t, "a")

		conn, err := pgx.Connect(t.Context(), proxy.DSN())
		if err != nil {
			t.Fatal(err)
		}
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), h.inSchema(insert), []byte("b")); err != nil {
			t.Fatal(err)
		}
		err = tx.Commit(t.Context())
		if err == nil || straight.count(t, "b") != 1 {
			t.Fatalf("pgx's own commit says %v", err)
		}
		if !pgconn.SafeToRetry(err) {
			t.Log("pgx no longer calls a lost reply safe to retry")
		}
	})
}

func TestCommitsThatAreNotSent(t *testing.T) {
	t.Run("trap_93_a_commit_is_never_sent_twice", func(t *testing.T) {
		h, straight, proxy := cutting(t)
		var commits atomic.Int32
		proxy.Watch(func(m pgproxy.Message) {
			if m.Direction == pgproxy.Request && pgproxy.Commit(m) {
				commits.Add(1)
			}
		})
		proxy.CutRequest(pgproxy.Commit)
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "a"))
		sqlsuite.Unknown(t, b.Commit(t.Context(), store.Ending{}))
		if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.NotCommitted {
			t.Errorf("a second commit says %+v", r)
		}
		if commits.Load() != 1 {
			t.Errorf("%d commits were sent", commits.Load())
		}
		straight.wantNothing(t, "a")
	})
	t.Run("trap_94_a_context_that_ended_before_commit_leaves_nothing_and_says_so", func(t *testing.T) {
		for _, f := range forms() {
			h, straight, _ := cutting(t)
			r := f.deliverUnder(t, h, cancelledContext(t), "a")
			wantRefused(t, r, store.ClassDown, store.NoCulprit)
			if !errors.Is(r.Err, context.Canceled) {
				t.Errorf("%s: the error is %v", f.name, r.Err)
			}
			straight.wantNothing(t, "a")
		}
	})
	t.Run("trap_T28_a_batch_cut_between_marker_and_effect_leaves_neither", func(t *testing.T) {
		h, straight, proxy := cutting(t)
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "a"))
		proxy.CutReply(pgproxy.Containing("effects"))
		_, err := b.Tx(0).Exec(t.Context(), h.inSchema(insert), []byte("a"))
		if err == nil || h.Classify(err) != store.ClassDown {
			t.Errorf("the effect says %v, of class %d", err, h.Classify(err))
		}
		if broken := b.(store.TxStatus).TxAborted(); !broken {
			t.Error("the batch does not know that it is broken")
		}
		if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.NotCommitted {
			t.Errorf("the commit says %+v", r)
		}
		straight.wantNothing(t, "a")
	})
}
