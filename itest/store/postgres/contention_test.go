package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestMarksThatWait(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	t.Run("case_5_a_copy_in_flight_elsewhere_ends_the_wait_as_contended", func(t *testing.T) {
		first, _ := s.begin(t, store.TxOptions{}, s.makeMarks(t, "a"))
		_, _, err := s.store.Begin(t.Context(), store.TxOptions{MarkLock: 20 * time.Millisecond}, s.makeMarks(t, "b", "a"))
		s.expectError(t, err, store.ClassContended, "55P03")
		first.Rollback(t.Context())
		s.expectWorks(t, s.makeMarks(t, "a", "b"))
	})
	t.Run("trap_9_the_time_out_of_marks_does_not_govern_effects", func(t *testing.T) {
		b, _ := s.begin(t, store.TxOptions{MarkLock: 20 * time.Millisecond, EffectLock: 1234 * time.Millisecond, Idle: time.Minute}, s.makeMarks(t, "c"))
		defer b.Rollback(t.Context())
		for setting, want := range map[string]string{"lock_timeout": "1234ms", "idle_in_transaction_session_timeout": "1min"} {
			if got := shown(t, b.Tx(0), setting); got != want {
				t.Errorf("%s is %s, want %s", setting, got, want)
			}
		}
	})
	t.Run("trap_99_batches_in_any_order_never_deadlock", func(t *testing.T) {
		var ids []string
		for i := range 60 {
			ids = append(ids, fmt.Sprint("batch ", i))
		}
		var ended sync.WaitGroup
		for worker := range 8 {
			ended.Go(func() {
				random := rand.New(rand.NewPCG(99, uint64(worker)))
				for range 10 {
					mine := s.makeMarks(t, ids...)
					random.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
					b, _, err := s.store.Begin(t.Context(), store.TxOptions{MarkLock: time.Minute}, mine[:40])
					if err != nil {
						t.Error(err)
						return
					}
					b.Rollback(t.Context())
				}
			})
		}
		ended.Wait()
	})
	t.Run("trap_9_a_strangers_lock_on_the_table_of_markers_ends_begin_with_its_context", func(t *testing.T) {
		stranger, err := s.db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stranger.Exec(s.inSchema("lock table in.semel_markers")); err != nil {
			t.Fatal(err)
		}
		marks := s.makeMarks(t, "h")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, _, err = s.store.Begin(ctx, store.TxOptions{}, marks)
		s.expectError(t, err, store.ClassDown, "")
		if err := stranger.Rollback(); err != nil {
			t.Fatal(err)
		}
		s.expectWorks(t, marks)
	})
}

func TestEffectsThatConflict(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	t.Run("trap_97_conflicts_are_nobodys_attempt_and_cancelled_statements_are_one", func(t *testing.T) {
		s.exec(t, "create table in.accounts (id int primary key, balance int)")
		s.exec(t, "insert into in.accounts values (1, 0), (2, 0)")
		update := func(b store.Batch[*sql.Tx], id int) error {
			_, err := b.Tx(0).ExecContext(t.Context(), s.inSchema("update in.accounts set balance = balance + 1 where id = $1"), id)
			return err
		}
		first, _ := s.begin(t, store.TxOptions{}, s.makeMarks(t, "d"))
		second, _ := s.begin(t, store.TxOptions{EffectLock: 20 * time.Millisecond}, s.makeMarks(t, "e"))
		if err := update(first, 1); err != nil {
			t.Fatal(err)
		}
		s.expectError(t, update(second, 1), store.ClassContended, "55P03")
		second.Rollback(t.Context())

		third, _ := s.begin(t, store.TxOptions{EffectLock: time.Minute}, s.makeMarks(t, "e"))
		if err := update(third, 2); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- update(first, 2) }()
		waitTrue(t, s.db, "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database())")
		errs := []error{update(third, 1), nil}
		third.Rollback(t.Context())
		errs[1] = <-ended
		first.Rollback(t.Context())
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Errorf("one of two must be the deadlock's victim: %v", errs)
		}
		for _, err := range errs {
			if err != nil {
				s.expectError(t, err, store.ClassContended, "40P01")
			}
		}

		fourth, _ := s.begin(t, store.TxOptions{}, s.makeMarks(t, "f"))
		_, err := fourth.Tx(0).ExecContext(t.Context(), "set local statement_timeout = '20ms'; select pg_sleep(30)")
		s.expectError(t, err, store.ClassRetry, "57014")
		fourth.Rollback(t.Context())
		s.expectWorks(t, s.makeMarks(t, "d", "e", "f"))
	})
}

func TestFrozenOwners(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	t.Run("law_11_a_frozen_owner_loses_its_transaction_to_the_server", func(t *testing.T) {
		marks := s.makeMarks(t, "g")
		frozen, _ := s.begin(t, store.TxOptions{Idle: 2 * time.Second}, marks)
		s.expectWorks(t, marks)
		s.expectError(t, s.Effect(t.Context(), frozen.Tx(0), "g"), store.ClassDown, "")
		if r := frozen.Commit(t.Context(), store.Ending{}); r.Outcome != store.NotCommitted {
			t.Errorf("the commit says %+v, want not committed", r)
		}
	})
}

func shown(t testing.TB, tx *sql.Tx, setting string) (value string) {
	t.Helper()
	if err := tx.QueryRow("select current_setting($1)", setting).Scan(&value); err != nil {
		t.Error(err)
	}
	return value
}

func TestBatchesInTurn(t *testing.T) {
	dsn := services.Postgres(t)
	s := newFixture(t, openDB(t, dsn, "lock_timeout=20ms"), sqlstore.Options{})
	other := newFixture(t, s.db, sqlstore.Options{})
	serial := store.TxOptions{Serial: true, MarkLock: time.Millisecond, EffectLock: time.Minute}
	t.Run("case_2_who_waits_for_the_consumers_lock_longer_than_its_turn_has_met_contention", func(t *testing.T) {
		first, _ := s.begin(t, serial, s.makeMarks(t, "first"))
		soon := serial
		soon.Turn = 50 * time.Millisecond
		if _, _, err := s.store.Begin(t.Context(), soon, s.makeMarks(t, "second")); err == nil || s.store.Classify(err) != store.ClassContended {
			t.Errorf("the second batch says %v", err)
		}
		first.Rollback(t.Context())
		second, _ := s.begin(t, soon, s.makeMarks(t, "second"))
		second.Rollback(t.Context())
	})
	t.Run("case_2_the_consumers_lock_is_waited_for_without_a_lock_time_out", func(t *testing.T) {
		first, _ := s.begin(t, serial, s.makeMarks(t, "a"))
		begun := make(chan store.Batch[*sql.Tx], 1)
		go func() {
			second, _, err := s.store.Begin(t.Context(), serial, s.makeMarks(t, "b"))
			if err != nil {
				t.Error(err)
			}
			begun <- second
		}()
		waitTrue(t, s.db, "select exists (select from pg_stat_activity where wait_event = 'advisory' and datname = current_database() and clock_timestamp() > query_start + interval '50ms')")
		if r := first.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed {
			t.Errorf("the commit says %+v", r)
		}
		second := <-begun
		if got := shown(t, second.Tx(0), "lock_timeout"); got != "1min" {
			t.Errorf("the effects' lock time-out is %s, want 1min", got)
		}
		second.Rollback(t.Context())
	})
	t.Run("other_consumers_and_other_stores_do_not_wait", func(t *testing.T) {
		first, _ := s.begin(t, serial, s.makeMarks(t, "c"))
		scope, err := s.store.Scope(t.Context(), "shipping", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		second, _ := s.begin(t, serial, []store.Mark{{Scope: scope, ID: []byte("c"), As: store.Applied}})
		third, _ := other.begin(t, serial, other.makeMarks(t, "c"))
		for _, b := range []store.Batch[*sql.Tx]{third, second, first} {
			b.Rollback(t.Context())
		}
	})
}

func TestOwnersOfTheConsumersLock(t *testing.T) {
	dsn := services.Postgres(t)
	s := newFixture(t, openDB(t, dsn), sqlstore.Options{})
	serial := store.TxOptions{Serial: true, MarkLock: time.Millisecond, EffectLock: time.Minute}
	t.Run("law_11_a_frozen_owner_of_the_lock_loses_it_to_the_server", func(t *testing.T) {
		o := serial
		o.Idle = 2 * time.Second
		frozen, _ := s.begin(t, o, s.makeMarks(t, "d"))
		next, _ := s.begin(t, serial, s.makeMarks(t, "e"))
		next.Rollback(t.Context())
		frozen.Rollback(t.Context())
	})
	t.Run("law_11_an_owner_of_the_lock_that_freezes_before_its_marks_loses_it_too", func(t *testing.T) {
		p := pgproxy.Start(t, dsn)
		frozen := *s
		// With the simple protocol, each protocol message to the server contains one whole statement. A server that has
		// received half of a statement would wait for the rest without a timeout.
		frozen.store = newUnmigratedStore(t, openDB(t, p.DSN(), "default_query_exec_mode=simple_protocol"), sqlstore.Options{Schema: s.schema})
		p.HoldRequest(pgproxy.Containing("with settings"))
		o := serial
		o.Idle = 2 * time.Second
		marks := s.makeMarks(t, "d")
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, _, err := frozen.store.Begin(ctx, o, marks)
			ended <- err
		}()
		waitTrue(t, s.db, "select exists (select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database()))")
		next, _ := s.begin(t, serial, s.makeMarks(t, "e"))
		next.Rollback(t.Context())
		cancel()
		s.expectError(t, <-ended, store.ClassDown, "")
	})
	t.Run("a_wait_for_the_lock_ends_with_its_context", func(t *testing.T) {
		first, _ := s.begin(t, serial, s.makeMarks(t, "f"))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, _, err := s.store.Begin(ctx, serial, s.makeMarks(t, "g"))
		s.expectError(t, err, store.ClassDown, "")
		first.Rollback(t.Context())
	})
}

func TestIsolation(t *testing.T) {
	dsn := services.Postgres(t)
	for _, role := range []string{"read%20committed", "repeatable%20read", "serializable"} {
		t.Run("trap_T24_the_level_is_read_committed_where_the_default_is_"+strings.ReplaceAll(role, "%20", "_"), func(t *testing.T) {
			s := newFixture(t, openDB(t, dsn, "default_transaction_isolation="+role), sqlstore.Options{})
			b, _ := s.begin(t, store.TxOptions{}, s.makeMarks(t, "a"))
			defer b.Rollback(t.Context())
			if got := shown(t, b.Tx(0), "transaction_isolation"); got != "read committed" {
				t.Errorf("the level is %s", got)
			}
		})
	}
	for level, want := range map[sql.IsolationLevel]string{
		sql.LevelReadCommitted: "read committed", sql.LevelRepeatableRead: "repeatable read", sql.LevelSerializable: "serializable",
	} {
		t.Run("trap_T23_copies_at_once_have_one_effect_at_"+want, func(t *testing.T) {
			s := newFixture(t, openDB(t, dsn), sqlstore.Options{Isolation: level})
			b, _ := s.begin(t, store.TxOptions{}, nil)
			if got := shown(t, b.Tx(store.All), "transaction_isolation"); got != want {
				t.Errorf("the level is %s, want %s", got, want)
			}
			b.Rollback(t.Context())
			var ended sync.WaitGroup
			for range 8 {
				ended.Go(func() { untilApplied(t, s, s.makeMarks(t, "a", "b", "c")) })
			}
			ended.Wait()
			s.expectWorks(t, s.makeMarks(t, "a", "b", "c"))
		})
	}
	t.Run("trap_98_above_read_committed_a_copy_in_flight_is_contended", func(t *testing.T) {
		s := newFixture(t, openDB(t, dsn), sqlstore.Options{Isolation: sql.LevelRepeatableRead})
		marks := s.makeMarks(t, "a")
		first, _ := s.begin(t, store.TxOptions{}, marks)
		ended := make(chan error, 1)
		go func() {
			_, _, err := s.store.Begin(t.Context(), store.TxOptions{}, marks)
			ended <- err
		}()
		waitTrue(t, s.db, "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database())")
		if r := first.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed {
			t.Fatal(r)
		}
		s.expectError(t, <-ended, store.ClassContended, "40001")
	})
}

// untilApplied applies messages like a consumer: messages whose marker is locked elsewhere are delivered again.
func untilApplied(t testing.TB, s *fixture, marks []store.Mark) {
	for {
		r, err := s.attempt(t, marks)
		switch {
		case err == nil && r.Outcome == store.Committed:
			return
		case err != nil && s.store.Classify(err) != store.ClassContended, err == nil && r.Class != store.ClassContended:
			t.Errorf("%+v, %v", r, err)
			return
		}
	}
}
