package pgxstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

func TestHandlersThatMisbehaveInTheirTransaction(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t)))
	t.Run("trap_95_a_swallowed_error_is_told_at_once_and_commits_nothing", func(t *testing.T) {
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "a", "b"))
		if _, err := b.Tx(0).Exec(t.Context(), "select 1 / 0"); err == nil {
			t.Fatal("the statement did not fail")
		}
		if !b.(store.TxStatus).TxAborted() {
			t.Error("the batch does not know that it is broken")
		}
		if _, err := b.Tx(1).Exec(t.Context(), "select 1"); h.Classify(err) != store.ClassAborted {
			t.Errorf("the next statement says %v", err)
		}
		wantRefused(t, b.Commit(t.Context(), store.Ending{}), store.ClassAborted, store.NoCulprit)
		h.wantNothing(t, "a", "b")
	})
	t.Run("trap_96_the_handle_cannot_commit_or_roll_back", func(t *testing.T) {
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "c"))
		tx := b.Tx(0)
		if err := tx.Commit(t.Context()); !errors.Is(err, pgxstore.ErrEndsItself) {
			t.Errorf("Commit says %v", err)
		}
		if err := tx.Rollback(t.Context()); !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("Rollback says %v", err)
		}
		if _, err := tx.Exec(t.Context(), h.inSchema(insert), []byte("c")); err != nil {
			t.Fatal(err)
		}
		wantCommitted(t, b.Commit(t.Context(), store.Ending{}))
		h.wantApplied(t, "c")
	})
	for name, statement := range map[string]string{
		"commit": "commit", "commit_and_chain": "commit and chain", "commit_and_begin": "commit; begin",
		"rollback_and_begin": "rollback; begin", "rollback_and_chain": "rollback and chain", "constraints_now": "set constraints all immediate",
	} {
		t.Run("trap_96_a_handlers_own_end_leaves_no_marker/"+name, func(t *testing.T) {
			ids := []string{name + "1", name + "2", name + "3"}
			b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, ids...))
			if _, err := b.Tx(0).Exec(t.Context(), h.inSchema(insert), []byte(ids[0])); err != nil {
				t.Fatal(err)
			}
			_, _ = b.Tx(0).Conn().Exec(t.Context(), statement)
			if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.NotCommitted {
				t.Errorf("the commit says %+v", r)
			}
			h.wantNothing(t, ids...)
		})
	}
	t.Run("a_savepoint_of_a_handler_rolls_back_alone", func(t *testing.T) {
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "d"))
		failed := errors.New("no")
		err := pgx.BeginFunc(t.Context(), b.Tx(0), func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), h.inSchema("insert into in.once values ('there')"))
			return errors.Join(err, failed)
		})
		if !errors.Is(err, failed) {
			t.Fatal(err)
		}
		if err := pgx.BeginFunc(t.Context(), b.Tx(0), func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), h.inSchema(insert), []byte("d"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		wantCommitted(t, b.Commit(t.Context(), store.Ending{}))
		h.wantApplied(t, "d")
	})
	t.Run("rows_that_a_handler_leaves_open_are_its_fault_and_harm_nobody", func(t *testing.T) {
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "e"))
		if _, err := b.Tx(0).Query(t.Context(), "select generate_series(1, 10)"); err != nil {
			t.Fatal(err)
		}
		if !b.(store.TxStatus).TxAborted() {
			t.Error("the batch does not know that it is busy")
		}
		wantRefused(t, b.Commit(t.Context(), store.Ending{}), store.ClassPermanent, store.NoCulprit)
		h.wantNothing(t, "e")
	})
	t.Run("trap_T30_a_handle_is_dead_after_its_batch", func(t *testing.T) {
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "f"))
		tx := b.Tx(0)
		b.Rollback(t.Context())
		if _, err := tx.Exec(t.Context(), h.inSchema(insert), []byte("f")); !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("Exec says %v", err)
		}
		if _, err := tx.Query(t.Context(), "select 1"); !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("Query says %v", err)
		}
		if err := tx.QueryRow(t.Context(), "select 1").Scan(); !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("QueryRow says %v", err)
		}
		if err := tx.SendBatch(t.Context(), &pgx.Batch{}).Close(); !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("SendBatch says %v", err)
		}
		h.wantNothing(t, "f")
	})
}

func TestFaultsOfTheServer(t *testing.T) {
	pool := openPool(t, services.Postgres(t))
	h := newFixture(t, pool)
	h.exec(t, "create table in.accounts (id int primary key deferrable initially deferred)")
	t.Run("trap_T12_one_duplicate_among_many_harms_none", func(t *testing.T) {
		for _, f := range forms() {
			wantCommitted(t, f.deliver(t, h, []string{f.name + "3"}))
			ids := []string{f.name + "1", f.name + "2", f.name + "3", f.name + "4", f.name + "1"}
			wantCommitted(t, f.deliver(t, h, ids))
			h.wantApplied(t, ids...)
		}
	})
	t.Run("law_1_a_constraint_that_fails_at_commit_leaves_neither_marker_nor_effect", func(t *testing.T) {
		b, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, h.makeMarks(t, "l1", "l2"))
		for i := range 2 {
			b.Tx(i).Exec(h.inSchema("insert into in.accounts values (1)"))
		}
		wantRefused(t, b.Commit(t.Context(), store.Ending{}), store.ClassPermanent, store.NoCulprit)
		h.wantNothing(t, "l1", "l2")
	})
	t.Run("trap_101_a_handler_that_is_idle_too_long_is_ended_by_the_server", func(t *testing.T) {
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{Idle: 20 * time.Millisecond}, h.makeMarks(t, "idle"))
		h.wantFreed(t, "idle")
		_, err := b.Tx(0).Exec(t.Context(), "select 1")
		if err == nil || h.Classify(err) != store.ClassDown {
			t.Errorf("the statement says %v, of class %d", err, h.Classify(err))
		}
		if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.NotCommitted {
			t.Errorf("the commit says %+v", r)
		}
		h.wantNothing(t, "idle")
	})
	t.Run("law_11_a_statement_under_way_ends_when_its_batch_is_killed", func(t *testing.T) {
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "killed"))
		ended := make(chan error)
		go func() {
			_, err := b.Tx(0).Exec(t.Context(), h.inSchema("insert into in.effects select 'killed' from pg_sleep(3600)"))
			ended <- err
		}()
		h.wantSleeping(t)
		b.Kill()
		if err := <-ended; err == nil {
			t.Error("the statement succeeded")
		}
		h.wantFreed(t, "killed")
		if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.NotCommitted {
			t.Errorf("the commit says %+v", r)
		}
		h.wantNothing(t, "killed")
	})
	t.Run("a_backend_that_is_terminated_takes_nothing_with_it", func(t *testing.T) {
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "gone"))
		h.exec(t, "select pg_terminate_backend($1)", b.Tx(0).Conn().PgConn().PID())
		r := b.Commit(t.Context(), store.Ending{})
		if r.Outcome == store.Committed || r.Class != store.ClassDown {
			t.Errorf("the commit says %+v", r)
		}
		h.wantFreed(t, "gone")
		h.wantNothing(t, "gone")
	})
	t.Run("trap_102_markers_carry_the_time_of_the_clock_and_not_of_the_transactions_start", func(t *testing.T) {
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, nil)
		if _, err := h.MarkIn(t.Context(), b.Tx(store.All), h.makeMarks(t, "clock")); err != nil {
			t.Fatal(err)
		}
		var later bool
		if err := b.Tx(store.All).QueryRow(t.Context(), h.inSchema("select at > now() from in.semel_markers where id = '\\x00636c6f636b'")).Scan(&later); err != nil || !later {
			t.Error("the marker has the time of the transaction's start", err)
		}
		b.Rollback(t.Context())
	})
}

// wantFreed waits until another process can write the marker of the message, which is possible after the
// server has ended the batch's transaction.
func (h *fixture) wantFreed(t testing.TB, id string) {
	t.Helper()
	b, v := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{MarkLock: 10 * time.Second}, h.makeMarks(t, id))
	b.Rollback(t.Context())
	if v[0].Kind != store.Fresh {
		t.Errorf("the verdict is %d", v[0].Kind)
	}
}

// wantSleeping waits until a statement sleeps on the server.
func (h *fixture) wantSleeping(t testing.TB) {
	t.Helper()
	for h.number(t, "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()") == 0 {
		if t.Context().Err() != nil {
			t.Fatal("nothing sleeps")
		}
	}
}

func TestContentionAmongBatches(t *testing.T) {
	pool := openPool(t, services.Postgres(t))
	t.Run("case_5_a_copy_in_flight_elsewhere_is_waited_for_as_long_as_asked_and_no_longer", func(t *testing.T) {
		h := newFixture(t, pool)
		first, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "a"))
		_, _, err := h.Begin(t.Context(), store.TxOptions{MarkLock: time.Millisecond, EffectLock: time.Hour}, h.makeMarks(t, "a", "b"))
		if err == nil || h.Classify(err) != store.ClassContended {
			t.Errorf("the copy's batch says %v", err)
		}
		first.Rollback(t.Context())
		wantCommitted(t, deliverQueued(t, h, []string{"a", "b"}))
	})
	t.Run("trap_97_a_lock_that_an_effect_waits_for_too_long_is_contention", func(t *testing.T) {
		h := newFixture(t, pool)
		first, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "a"))
		if _, err := first.Tx(0).Exec(t.Context(), h.inSchema("update in.once set name = name")); err != nil {
			t.Fatal(err)
		}
		second, _ := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{MarkLock: time.Hour, EffectLock: time.Millisecond}, h.makeMarks(t, "b"))
		second.Tx(0).Exec(h.inSchema("update in.once set name = name"))
		wantRefused(t, second.Commit(t.Context(), store.Ending{}), store.ClassContended, 0)
		wantCommitted(t, first.Commit(t.Context(), store.Ending{}))
	})
	t.Run("trap_97_a_deadlock_is_contention_of_one_and_the_other_commits", func(t *testing.T) { deadlock(t, newFixture(t, pool)) })
	t.Run("trap_98_a_copy_under_other_levels_is_contention_and_then_a_duplicate", func(t *testing.T) {
		for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
			h := newFixture(t, pool)
			stricter, err := pgxstore.New(pool, pgxstore.Options{Schema: h.schema, Isolation: level})
			if err != nil {
				t.Fatal(err)
			}
			h.copyInFlight(t, stricter, level)
		}
	})
	t.Run("trap_T24_the_level_is_read_committed_whatever_the_servers_default", func(t *testing.T) {
		dsn := services.Postgres(t)
		h := newFixture(t, openPool(t, dsn, func(c *pgxpool.Config) {
			c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
		}))
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "a"))
		var level string
		if err := b.Tx(0).QueryRow(t.Context(), "show transaction_isolation").Scan(&level); err != nil || level != "read committed" {
			t.Errorf("the level is %q (%v)", level, err)
		}
		b.Rollback(t.Context())
	})
	t.Run("serial_batches_of_one_consumer_take_turns", func(t *testing.T) { takeTurns(t, newFixture(t, pool)) })
	t.Run("a_pool_of_one_connection_gives_an_error_and_no_deadlock", func(t *testing.T) {
		h := newFixture(t, openPool(t, services.Postgres(t), func(c *pgxpool.Config) { c.MaxConns = 1 }))
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "a"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, _, err := h.Begin(ctx, store.TxOptions{}, h.makeMarks(t, "a"))
		if !errors.Is(err, context.DeadlineExceeded) || h.Classify(err) != store.ClassDown {
			t.Errorf("a second batch says %v, of class %d", err, h.Classify(err))
		}
		wantCommitted(t, b.Commit(t.Context(), store.Ending{}))
	})
}

// deadlock makes two batches lock two rows in opposite orders.
func deadlock(t *testing.T, h *fixture) {
	h.exec(t, "insert into in.once values ('other')")
	names := []string{"there", "other"}
	results := make([]store.Result, 2)
	var both, done sync.WaitGroup
	both.Add(2)
	for n := range 2 {
		b, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{EffectLock: time.Minute}, h.makeMarks(t, fmt.Sprint("m", n)))
		done.Go(func() {
			lock := func(name string) error {
				_, err := b.Tx(0).Exec(context.Background(), h.inSchema("update in.once set name = name where name = $1"), name)
				return err
			}
			err := lock(names[n])
			both.Done()
			both.Wait()
			if err == nil {
				err = lock(names[1-n])
			}
			if err != nil {
				b.Rollback(context.Background())
				results[n] = store.Result{Outcome: store.NotCommitted, Class: h.Classify(err), Err: err}
				return
			}
			results[n] = b.Commit(context.Background(), store.Ending{})
		})
	}
	done.Wait()
	if results[0].Outcome == store.Committed {
		results[0], results[1] = results[1], results[0]
	}
	if results[0].Class != store.ClassContended || results[1].Outcome != store.Committed {
		t.Errorf("the batches say %+v", results)
	}
}

// copyInFlight delivers a message a second time while the first delivery is in progress. The store of the second
// delivery uses another isolation level.
func (h *fixture) copyInFlight(t *testing.T, stricter *pgxstore.Store, level pgx.TxIsoLevel) {
	first, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, store.TxOptions{}, h.makeMarks(t, "a"))
	if _, err := first.Tx(0).Exec(t.Context(), h.inSchema(insert), []byte("a")); err != nil {
		t.Fatal(err)
	}
	said := make(chan error)
	go func() {
		b, v, err := stricter.Begin(context.Background(), store.TxOptions{}, h.makeMarks(t, "a"))
		if err == nil {
			b.Rollback(context.Background())
			err = fmt.Errorf("the verdict is %d", v[0].Kind)
		}
		said <- err
	}()
	for h.number(t, "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()") == 0 {
		if t.Context().Err() != nil {
			t.Fatal("nobody waits")
		}
	}
	wantCommitted(t, first.Commit(t.Context(), store.Ending{}))
	if err := <-said; stricter.Classify(err) != store.ClassContended {
		t.Errorf("%s: the copy says %v", level, err)
	}
	b, v := sqlsuite.Begin[pgx.Tx](t, stricter, store.TxOptions{}, h.makeMarks(t, "a"))
	b.Rollback(t.Context())
	if !v[0].Already(store.Applied) {
		t.Errorf("%s: the copy's second verdict is %d", level, v[0].Kind)
	}
}

// takeTurns checks that two serial batches are never open at once. takeTurns also checks that a batch that waits for
// its turn does not fail with a lock timeout.
func takeTurns(t *testing.T, h *fixture) {
	serial := store.TxOptions{Serial: true, Consumer: "billing", MarkLock: time.Millisecond, EffectLock: time.Millisecond}
	first, _ := sqlsuite.Begin[pgx.Tx](t, h.Store, serial, h.makeMarks(t, "a"))
	soon := serial
	soon.Turn = 50 * time.Millisecond
	if _, _, err := h.Begin(t.Context(), soon, h.makeMarks(t, "late")); err == nil || h.Classify(err) != store.ClassContended {
		t.Errorf("a batch that waits longer than its turn gets %v", err)
	}
	opened := make(chan store.Batch[*pgxstore.Queue])
	go func() {
		b, _, err := h.Queued().Begin(context.Background(), serial, h.makeMarks(t, "b"))
		if err != nil {
			t.Error(err)
		}
		opened <- b
	}()
	for h.number(t, "select count(*) from pg_stat_activity where wait_event = 'advisory' and datname = current_database()") == 0 {
		if t.Context().Err() != nil {
			t.Fatal("nobody waits")
		}
	}
	select {
	case <-opened:
		t.Fatal("two serial batches are open at once")
	default:
	}
	wantCommitted(t, first.Commit(t.Context(), store.Ending{}))
	if b := <-opened; b != nil {
		b.Rollback(t.Context())
	}
}
