package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func wantUnknown(t testing.TB, r store.Result, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("the batch says %v", err)
	}
	sqlsuite.Unknown(t, r)
}

func TestUnknownCommits(t *testing.T) {
	p := pgproxy.Start(t, services.Postgres(t))
	s := newFixture(t, openDB(t, p.DSN()), sqlstore.Options{})
	t.Run("trap_89_a_commit_whose_reply_is_lost_is_unknown_and_was_applied", func(t *testing.T) {
		marks := s.makeMarks(t, "a", "b")
		cut := p.CutReply(pgproxy.Commit)
		r, err := s.attempt(t, marks)
		cut.Remove()
		wantUnknown(t, r, err)
		b, v := s.begin(t, store.TxOptions{}, marks)
		b.Rollback(t.Context())
		if !v[0].Already(store.Applied) || !v[1].Already(store.Applied) {
			t.Errorf("marked again: %v, want applied", v)
		}
		s.expectWorks(t, marks)
	})
	t.Run("trap_90_a_commit_whose_request_is_lost_is_unknown_and_runs_again", func(t *testing.T) {
		marks := s.makeMarks(t, "c", "d")
		cut := p.CutRequest(pgproxy.Commit)
		r, err := s.attempt(t, marks)
		cut.Remove()
		wantUnknown(t, r, err)
		b, v := s.begin(t, store.TxOptions{}, marks)
		b.Rollback(t.Context())
		if v[0].Kind != store.Fresh || v[1].Kind != store.Fresh {
			t.Errorf("marked again: %v, want fresh", v)
		}
		s.expectWorks(t, marks)
	})
	t.Run("trap_89_marking_again_waits_for_a_commit_that_still_runs", func(t *testing.T) {
		marks := s.makeMarks(t, "e")
		b, _ := s.begin(t, store.TxOptions{}, marks)
		if err := s.Effect(t.Context(), b.Tx(0), "e"); err != nil {
			t.Fatal(err)
		}
		commit := p.HoldRequest(pgproxy.Commit)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan store.Result, 1)
		go func() { ended <- b.Commit(ctx, store.Ending{}) }()
		if err := commit.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		cancel()
		sqlsuite.Unknown(t, <-ended)
		commit.Remove()
		s.expectWorks(t, marks)
	})
}

func TestCommitsThatEndInTime(t *testing.T) {
	p := pgproxy.Start(t, services.Postgres(t))
	s := newFixture(t, openDB(t, p.DSN()), sqlstore.Options{})
	t.Run("trap_94_a_deadline_that_passes_in_flight_leaves_the_commit_unknown", func(t *testing.T) {
		marks := s.makeMarks(t, "f")
		// On a busy machine, the time may pass before the consumer has begun a batch. The test is then repeated with a
		// longer time.
		for in := 100 * time.Millisecond; ; in *= 4 {
			b, _ := s.begin(t, store.TxOptions{}, marks)
			if err := s.Effect(t.Context(), b.Tx(0), "f"); err != nil {
				t.Fatal(err)
			}
			reply := p.HoldReply(pgproxy.Commit)
			ctx, cancel := context.WithTimeout(t.Context(), in)
			r := b.Commit(ctx, store.Ending{})
			cancel()
			answered := reply.Hits() > 0
			reply.Remove()
			if answered || r.Outcome != store.NotCommitted || in > time.Minute {
				sqlsuite.Unknown(t, r)
				break
			}
		}
		s.expectWorks(t, marks)
	})
	t.Run("trap_94_a_context_that_is_over_before_the_commit_commits_nothing", func(t *testing.T) {
		marks := s.makeMarks(t, "g")
		b, _ := s.begin(t, store.TxOptions{}, marks)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r := b.Commit(ctx, store.Ending{}); r.Outcome != store.NotCommitted || r.Class != store.ClassDown {
			t.Errorf("the commit says %+v, want not committed, down", r)
		}
		s.expectWorks(t, marks)
	})
}

func TestCommitsAreSentOnce(t *testing.T) {
	p := pgproxy.Start(t, services.Postgres(t))
	s := newFixture(t, openDB(t, p.DSN()), sqlstore.Options{})
	t.Run("trap_93_a_commit_is_sent_once", func(t *testing.T) {
		marks := s.makeMarks(t, "h")
		commits := make(chan pgproxy.Message, 100)
		p.Watch(func(m pgproxy.Message) {
			if m.Direction == pgproxy.Request && pgproxy.Commit(m) {
				commits <- m
			}
		})
		cut := p.CutReply(pgproxy.Commit)
		r, err := s.attempt(t, marks)
		cut.Remove()
		wantUnknown(t, r, err)
		if n := len(commits); n != 1 {
			t.Errorf("%d commits were sent, want 1", n)
		}
		s.expectWorks(t, marks)
	})
	t.Run("trap_92_a_scope_whose_reply_is_lost_has_one_number", func(t *testing.T) {
		cut := p.CutReply(pgproxy.Commit)
		_, err := s.store.Scope(t.Context(), "shipping", "", 0)
		cut.Remove()
		if err == nil {
			t.Fatal("the reply was not lost")
		}
		first, err := s.store.Scope(t.Context(), "shipping", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		if n := queryOne[int64](t, s.db, s.inSchema("select number from in.semel_scopes where consumer = 'shipping'")); n != first {
			t.Errorf("the number is %d and %d", n, first)
		}
	})
}

func TestRefusedCommits(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	t.Run("trap_100_a_statement_cancelled_at_commit_is_definite_and_its_connection_is_discarded", func(t *testing.T) {
		s.exec(t, "create function in.slow() returns trigger language plpgsql as 'begin perform pg_sleep(30); return null; end'")
		s.exec(t, "create table in.audit (name text)")
		s.exec(t, "create constraint trigger slow after insert on in.audit deferrable initially deferred for each row execute function in.slow()")
		marks := s.makeMarks(t, "a")
		b, _ := s.begin(t, store.TxOptions{}, marks)
		if _, err := b.Tx(0).ExecContext(t.Context(), s.inSchema("insert into in.audit values ('x')")); err != nil {
			t.Fatal(err)
		}
		ended := make(chan store.Result, 1)
		go func() { ended <- b.Commit(t.Context(), store.Ending{}) }()
		waitTrue(t, s.db, "select coalesce(bool_or(pg_cancel_backend(pid)), false) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()")
		r := <-ended
		if r.Outcome != store.NotCommitted || r.Culprit != store.NoCulprit {
			t.Errorf("the commit says %+v, want not committed", r)
		}
		s.expectWorks(t, marks)
		if n := queryOne[int](t, s.db, s.inSchema("select count(*) from in.audit")); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
	t.Run("a_deferred_constraint_that_fails_at_commit_is_permanent_and_names_nobody", func(t *testing.T) {
		s.exec(t, "create table in.parent (id int primary key)")
		s.exec(t, "create table in.child (id int references in.parent deferrable initially deferred)")
		marks := s.makeMarks(t, "b", "c")
		b, _ := s.begin(t, store.TxOptions{}, marks)
		if _, err := b.Tx(1).ExecContext(t.Context(), s.inSchema("insert into in.child values (7)")); err != nil {
			t.Fatal(err)
		}
		r := b.Commit(t.Context(), store.Ending{})
		if r.Outcome != store.NotCommitted || r.Class != store.ClassPermanent || r.Culprit != store.NoCulprit {
			t.Errorf("Commit returned %+v, want not committed, permanent, no culprit", r)
		}
		s.expectWorks(t, marks)
	})
}

func TestHandlersThatBreakTheirTransaction(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	t.Run("trap_95_a_swallowed_error_never_commits", func(t *testing.T) {
		marks := s.makeMarks(t, "d", "e")
		b, _ := s.begin(t, store.TxOptions{}, marks)
		if b.(store.TxStatus).TxAborted() {
			t.Error("a sound batch says that it is broken")
		}
		if err := s.Spoil(t.Context(), b.Tx(0)); err == nil {
			t.Fatal("the statement did not fail")
		}
		if !b.(store.TxStatus).TxAborted() {
			t.Error("the batch does not know that it is broken")
		}
		s.expectError(t, s.Effect(t.Context(), b.Tx(1), "e"), store.ClassAborted, "25P02")
		r := b.Commit(t.Context(), store.Ending{})
		if r.Outcome != store.NotCommitted || r.Class != store.ClassAborted {
			t.Errorf("the commit says %+v, want not committed, aborted", r)
		}
		s.expectWorks(t, marks)
	})
	for _, statement := range []string{"commit", "rollback", "rollback; begin", "rollback and chain", "prepare transaction 'x'"} {
		t.Run("trap_96_a_handler_that_says_"+statement+"_in_sql_leaves_nothing", func(t *testing.T) {
			marks := s.makeMarks(t, statement, statement+" 2")
			b, _ := s.begin(t, store.TxOptions{}, marks)
			if err := s.Effect(t.Context(), b.Tx(0), statement); err != nil {
				t.Fatal(err)
			}
			_, failed := b.Tx(0).ExecContext(t.Context(), statement)
			if broken := b.(store.TxStatus).TxAborted(); !broken && statement != "rollback; begin" && statement != "rollback and chain" {
				t.Errorf("the batch does not know that it is broken; the handler heard %v", failed)
			}
			r := b.Commit(t.Context(), store.Ending{})
			if r.Outcome != store.NotCommitted || r.Class != store.ClassAborted {
				t.Errorf("the commit says %+v, want not committed, aborted", r)
			}
			s.expectWorks(t, marks)
		})
	}
}

func TestConnectionsAreCut(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	t.Run("law_11_kill_ends_a_statement_that_has_no_context", func(t *testing.T) {
		marks := s.makeMarks(t, "a")
		b, _ := s.begin(t, store.TxOptions{}, marks)
		ended := make(chan error, 1)
		go func() {
			_, err := b.Tx(0).Exec("select pg_sleep(600)")
			ended <- err
		}()
		waitTrue(t, s.db, "select exists (select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database())")
		b.Kill()
		s.expectError(t, <-ended, store.ClassDown, "")
		b.Rollback(t.Context())
		exec(t, s.db, "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()")
		s.expectWorks(t, marks)
	})
	t.Run("trap_T28_a_backend_that_is_ended_between_marks_and_effects_leaves_neither", func(t *testing.T) {
		marks := s.makeMarks(t, "b", "c")
		for _, effects := range []int{0, 1, 2} {
			b, _ := s.begin(t, store.TxOptions{}, marks)
			for i := range effects {
				if err := s.Effect(t.Context(), b.Tx(i), string(marks[i].ID)); err != nil {
					t.Fatal(err)
				}
			}
			var pid int
			if err := b.Tx(0).QueryRow("select pg_backend_pid()").Scan(&pid); err != nil {
				t.Fatal(err)
			}
			exec(t, s.db, "select pg_terminate_backend($1, 10000)", pid)
			if effects == 1 {
				s.expectError(t, s.Effect(t.Context(), b.Tx(1), "c"), store.ClassDown, "")
			}
			if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.NotCommitted || r.Class != store.ClassDown {
				t.Errorf("the commit says %+v, want not committed, down", r)
			}
		}
		s.expectWorks(t, marks)
	})
}
