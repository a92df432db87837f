package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

// useDailyPartitions makes the store keep its markers in daily partitions.
func (s *fixture) useDailyPartitions(t testing.TB, back int) *fixture {
	t.Helper()
	sqlsuite.Today(t)
	store, err := s.store.Dated(t.Context(), sqlstore.Dated{Consumer: "billing", IDTime: identity.UUIDv7, Back: back})
	if err != nil {
		t.Fatal(err)
	}
	s.store, s.Instance.Store = store, store
	return s
}

// anyDay replaces the daily partitions by one partition for all ids. With one partition, test cases with ids that
// contain no time also run with the statements of daily partitions.
func (s *fixture) anyDay(t testing.TB) *fixture {
	t.Helper()
	s.useDailyPartitions(t, 0)
	for _, name := range s.listPartitions(t) {
		s.exec(t, "drop table "+name)
	}
	s.exec(t, "create table in.any_day partition of in.semel_markers_1 for values from (minvalue) to ('\\x05'::bytea)")
	s.exec(t, `update in.semel_dated set low = '\x', high = '\x05', low_day = '9000-01-01', high_day = '9000-01-01'`)
	return s
}

// listPartitions returns the names of the daily partitions.
func (s *fixture) listPartitions(t testing.TB) []string {
	t.Helper()
	rows, err := s.db.Query(s.inSchema(`select i.inhrelid::regclass::text from pg_inherits i where i.inhparent = 'in.semel_markers_1'::regclass
and i.inhrelid::regclass::text ~ '_[0-9]{8}"?$' order by 1`))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		all = append(all, name)
	}
	return all
}

// dayStart returns the start of a day in UTC. The parameter days is the number of days between today and the returned
// day.
func dayStart(days int) time.Time {
	return time.Now().UTC().Truncate(aDay).Add(time.Duration(days) * aDay)
}

// uuid returns an id whose time is dayStart(days).
func uuid(days, n int) string {
	ms := dayStart(days).UnixMilli()
	return fmt.Sprintf("%08x-%04x-7000-8000-%012x", ms>>16, ms&0xffff, n)
}

func TestMarkersByDayKeepTheLaws(t *testing.T) {
	db := newDatabase(t)
	shops := &services.Lent[*fixture]{
		Make: func(t testing.TB) *fixture { return newFixture(t, db, sqlstore.Options{}).anyDay(t) },
		Empty: func(t testing.TB, used *fixture) *fixture {
			used.exec(t, services.Emptying(used.schema, "semel_migrations", "once", "semel_dated"))
			return fixtureOf(t, db, newUnmigratedStore(t, db, sqlstore.Options{Schema: used.schema}), used.schema).useDailyPartitions(t, 0)
		},
	}
	storetest.Run(t, storetest.Harness[*sql.Tx]{
		Open: func(t testing.TB) storetest.Instance[*sql.Tx] { return shops.Open(t).Instance },
		Can:  storetest.Abilities{Inbox: true, Replays: true, Leases: true, Calls: true, Steps: true, Intents: true, Emission: true, Results: true, Audit: true, Erasure: true, Streams: true, Lines: true, Retention: true, MarkIn: true, Positions: true, Offsets: true, Generations: true, Controls: true, Derivations: true, OneConsumer: true, Days: true, LeavesLate: true, Edits: true},
		Only: sqlsuite.OneLine,
	})
}

// processAll processes ids, commits the new ids with the outcome as, and returns the store's verdict (new,
// duplicate, …) for each id.
func (s *fixture) processAll(t testing.TB, as store.Outcome, ids ...string) []store.Verdict {
	t.Helper()
	marks := sqlsuite.Marks[*sql.Tx](t, s.Instance.Store, "shop", ids...)
	for i := range marks {
		marks[i].As = as
	}
	b, v := sqlsuite.Begin[*sql.Tx](t, s.Instance.Store, store.TxOptions{}, marks)
	var trim []int
	for i := range v {
		if v[i].Kind == store.Old {
			trim = append(trim, i)
		}
	}
	if r := b.Commit(context.WithoutCancel(t.Context()), store.Ending{Trim: trim}); r.Outcome != store.Committed {
		t.Fatalf("the commit says %+v", r)
	}
	return v
}

// The store's verdicts that the test cases expect.
var (
	isFresh   = store.Verdict{Kind: store.Fresh}
	isOld     = store.Verdict{Kind: store.Old}
	isAhead   = store.Verdict{Kind: store.Old, Ahead: true}
	isApplied = store.Verdict{Kind: store.Seen, Was: store.Applied}
	isParked  = store.Verdict{Kind: store.Seen, Was: store.Parked}
)

func wantVerdicts(t testing.TB, got []store.Verdict, want ...store.Verdict) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the verdicts are %+v, want %+v", got, want)
	}
}

// reaper returns the store with the interface for removing old markers.
func (s *fixture) reaper() store.Reaper { return s.store }

// setRetention stores a retention for the consumer.
func (s *fixture) setRetention(t testing.TB, keep time.Duration) {
	t.Helper()
	if err := s.reaper().Retain(t.Context(), store.Retention{Consumer: "billing", Keep: keep}); err != nil {
		t.Fatal(err)
	}
}

// pass lets the reaper, which removes old markers, advance its low-water mark and make one pass over the markers.
func (s *fixture) pass(t testing.TB) store.Reaped {
	t.Helper()
	if err := s.reaper().Progressed(t.Context(), "billing", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.reaper().Advance(t.Context(), "billing"); err != nil {
		t.Fatal(err)
	}
	r, err := s.reaper().Reap(t.Context(), store.Reaping{Consumer: "billing", Most: 100})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const aDay = 24 * time.Hour

func TestMarkersByDayAreRoutedByTheirIDs(t *testing.T) {
	db := newDatabase(t)
	open := func(t *testing.T, back int) *fixture {
		return newFixture(t, db, sqlstore.Options{}).useDailyPartitions(t, back)
	}
	t.Run("trap_88_an_id_of_ten_years_ago_or_ahead_is_not_fresh_and_stops_nobody", func(t *testing.T) {
		s := open(t, 2)
		past, now, future := uuid(-3650, 1), uuid(0, 2), uuid(3650, 3)
		wantVerdicts(t, s.processAll(t, store.Applied, past, now, future), isOld, isFresh, isAhead)
		wantVerdicts(t, s.processAll(t, store.Waiting, past, future), isOld, isAhead)
		wantVerdicts(t, s.processAll(t, store.Parked, past, future, future), isFresh, isFresh, isParked)
		wantVerdicts(t, s.processAll(t, store.Applied, past, now, future), isParked, isApplied, isParked)
		if n := queryOne[int](t, s.db, s.inSchema("select count(*) from in.semel_markers")); n != 0 {
			t.Errorf("%d markers lie in the table of all", n)
		}
	})
	t.Run("trap_T19_uniqueness_does_not_end_at_the_border_of_a_day", func(t *testing.T) {
		s := open(t, 2)
		for day := -2; day <= 3; day++ {
			wantVerdicts(t, s.processAll(t, store.Applied, uuid(day, 1)), isFresh) // the time is a part of the id, so the message is new
		}
		id := uuid(3, 7)
		s.processAll(t, store.Parked, id)
		wantVerdicts(t, s.processAll(t, store.Applied, id), isParked)
	})
	t.Run("trap_8_a_marker_lies_where_its_id_says_whenever_it_came", func(t *testing.T) {
		s := open(t, 5)
		id := uuid(-4, 1)
		s.processAll(t, store.Applied, id)
		day := dayStart(-4).Format("20060102")
		if n := queryOne[int](t, s.db, s.inSchema("select count(*) from in.semel_markers_1_"+day)); n != 1 {
			t.Errorf("%d markers lie in the day of their ids", n)
		}
	})
	t.Run("trap_88_what_stands_aside_is_the_judge_when_its_day_has_come", func(t *testing.T) {
		s := open(t, 0)
		id := uuid(5, 1)
		s.processAll(t, store.Parked, id)
		// an unrelated partition must not prevent the creation of daily partitions
		s.exec(t, "create table in.coming partition of in.semel_markers_1 for values from ('\\x02'::bytea) to ('\\x03'::bytea)")
		s.exec(t, "update in.semel_dated set high = '\\x02'")
		wantVerdicts(t, s.processAll(t, store.Applied, id), isParked)
	})
	t.Run("H3_ids_of_another_kind_are_no_identities", func(t *testing.T) {
		s := open(t, 0)
		fits := s.Instance.Store.Limits().FitIdentity
		for _, id := range []string{"", "a", "0190a5e2-7d0b-4c3e-8f00-0123456789ab"} {
			if _, err := fits("shop", id); err == nil {
				t.Errorf("%q is fit", id)
			}
		}
		if id, err := fits("shop", "0190A5E2-7D0B-7C3E-8F00-0123456789AB"); err != nil || id != "0190a5e2-7d0b-7c3e-8f00-0123456789ab" {
			t.Errorf("it is spelled %q, %v", id, err)
		}
	})
	t.Run("law_13_without_a_day_for_tomorrow_nothing_is_taken_for_the_future", func(t *testing.T) {
		s := open(t, 0)
		s.exec(t, "update in.semel_dated set high_day = current_date, high = in.semel_day_bound('uuidv7', current_date - 1)")
		marks := sqlsuite.Marks[*sql.Tx](t, s.Instance.Store, "shop", uuid(0, 1))
		if _, _, err := s.Instance.Store.Begin(t.Context(), store.TxOptions{}, marks); err == nil || s.Instance.Store.Classify(err) != store.ClassDown {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestADayIsDropped(t *testing.T) {
	db := newDatabase(t)
	open := func(t *testing.T, back int) *fixture {
		s := newFixture(t, db, sqlstore.Options{}).useDailyPartitions(t, back)
		s.setRetention(t, 2*aDay)
		return s
	}
	t.Run("H3_with_its_markers_and_a_copy_of_it_is_never_fresh", func(t *testing.T) {
		s := open(t, 6)
		old, young := uuid(-4, 1), uuid(-1, 2)
		s.processAll(t, store.Applied, old, young)
		if r := s.pass(t); r.Days != 4 || len(s.listPartitions(t)) != 6 {
			t.Errorf("the pass removed %+v, and %d days stand", r, len(s.listPartitions(t)))
		}
		wantVerdicts(t, s.processAll(t, store.Applied, old, young), isOld, isApplied)
		if r := s.pass(t); r.Days != 0 {
			t.Errorf("the next pass removed %+v", r)
		}
		if err := s.store.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("trap_T68_not_while_it_holds_what_has_not_ended", func(t *testing.T) {
		s := open(t, 6)
		id := uuid(-4, 1)
		s.processAll(t, store.Parked, id)
		if r := s.pass(t); r.Days != 3 || len(s.listPartitions(t)) != 7 {
			t.Errorf("the pass removed %+v, and %d days stand", r, len(s.listPartitions(t)))
		}
		wantVerdicts(t, s.processAll(t, store.Applied, id), isParked)
		all, err := s.reaper().Retentions(t.Context(), "billing")
		if err != nil || len(all) != 1 || time.Since(all[0].First) < 4*aDay {
			t.Errorf("its lateness is not shown: %+v, %v", all, err)
		}
	})
	t.Run("H3_when_nobody_has_it_open_and_nobody_waits_for_it", func(t *testing.T) {
		s := open(t, 6)
		marks := sqlsuite.Marks[*sql.Tx](t, s.Instance.Store, "shop", uuid(-4, 1))
		b, v := sqlsuite.Begin[*sql.Tx](t, s.Instance.Store, store.TxOptions{}, marks)
		wantVerdicts(t, v, isFresh)
		if r := s.pass(t); r.Days != 0 || len(s.listPartitions(t)) != 10 {
			t.Errorf("under an open transaction the pass removed %+v", r)
		}
		if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed {
			t.Fatalf("the commit says %+v", r)
		}
		// Ids of a day are not new after the low-water mark has passed the day, even if the day's partition still
		// exists, for example after a kill.
		wantVerdicts(t, s.processAll(t, store.Applied, uuid(-4, 1), uuid(-4, 2)), isApplied, isOld)
		if r := s.pass(t); r.Days != 4 {
			t.Errorf("the next pass removed %+v", r)
		}
		wantVerdicts(t, s.processAll(t, store.Applied, uuid(-4, 1)), isOld)
	})
	t.Run("H3_a_day_that_somebody_holds_keeps_no_other", func(t *testing.T) {
		s := open(t, 6)
		held := s.listPartitions(t)[0]
		tx, err := s.db.Begin()
		if err == nil {
			_, err = tx.Exec("lock table " + held + " in share mode")
		}
		if err != nil {
			t.Fatal(err)
		}
		if r := s.pass(t); r.Days != 3 || s.listPartitions(t)[0] != held {
			t.Errorf("the pass removed %+v, and %v stand", r, s.listPartitions(t))
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if r := s.pass(t); r.Days != 1 {
			t.Errorf("the next pass removed %+v", r)
		}
	})
	t.Run("H3_where_something_keeps_the_mark_of_days_from_being_raised_none_is_made_without_end", func(t *testing.T) {
		s := open(t, 1)
		s.exec(t, "update in.semel_dated set high_day = high_day - 2; create trigger mine before update on in.semel_dated for each row execute function suppress_redundant_updates_trigger()")
		s.exec(t, "create function in.never() returns trigger language plpgsql as 'begin return null; end'; drop trigger mine on in.semel_dated; create trigger mine before update on in.semel_dated for each row execute function in.never()")
		if err := s.reaper().Progressed(t.Context(), "billing", nil); !errors.Is(err, semel.ErrSchema) || !strings.Contains(err.Error(), "semel_dated") {
			t.Errorf("it says %v", err)
		}
	})
	t.Run("H3_by_hand_and_its_ids_wait_until_it_is_attached_again", func(t *testing.T) {
		s := open(t, 1)
		name := s.listPartitions(t)[1]
		s.processAll(t, store.Applied, uuid(0, 1))
		s.exec(t, "alter table in.semel_markers_1 detach partition "+name)
		if err := s.store.Check(t.Context()); !errors.Is(err, semel.ErrSchema) || !strings.Contains(err.Error(), "attach it again") {
			t.Errorf("the check says %v", err)
		}
		marks := sqlsuite.Marks[*sql.Tx](t, s.Instance.Store, "shop", uuid(0, 1))
		if _, _, err := s.Instance.Store.Begin(t.Context(), store.TxOptions{}, marks); !errors.Is(err, semel.ErrSchema) {
			t.Errorf("the error is %v", err)
		}
		wantVerdicts(t, s.processAll(t, store.Applied, uuid(1, 1)), isFresh)
		s.setRetention(t, 2*aDay) // the reaper must not create another partition instead
		day := time.Now().UTC().Truncate(aDay)
		s.exec(t, fmt.Sprintf("alter table in.semel_markers_1 attach partition %s for values from (in.semel_day_bound('uuidv7', '%s')) to (in.semel_day_bound('uuidv7', '%s'))", name, day.Format("2006-01-02"), day.Add(aDay).Format("2006-01-02")))
		if err := s.store.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("trap_T63_while_four_workers_consume", func(t *testing.T) { s := open(t, 30); s.droppedUnderLoad(t) })
}

// droppedUnderLoad drops partitions while other processes write markers, and checks that no write fails.
func (s *fixture) droppedUnderLoad(t *testing.T) {
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				marks := []store.Mark{{Scope: 1, ID: []byte(uuid(0, w<<40|n)), As: store.Applied}, {Scope: 1, ID: []byte(uuid(-n%40, w<<40|n)), As: store.Applied}}
				b, _, err := s.Instance.Store.Begin(context.Background(), store.TxOptions{}, marks)
				if err == nil {
					err = b.Commit(context.Background(), store.Ending{}).Err
				}
				if err != nil && s.Instance.Store.Classify(err) != store.ClassContended {
					t.Errorf("a worker: %v", err)
					return
				}
			}
		}()
	}
	var days int64
	for start := time.Now(); days < 28 && time.Since(start) < 2*time.Minute; {
		_ = s.reaper().Progressed(t.Context(), "billing", nil)
		if _, err := s.reaper().Advance(t.Context(), "billing"); err != nil {
			t.Error(err)
			break
		}
		r, err := s.reaper().Reap(t.Context(), store.Reaping{Consumer: "billing", Most: 100})
		if err != nil && s.Instance.Store.Classify(err) != store.ClassContended {
			t.Error(err)
			break
		}
		days += r.Days
	}
	close(stop)
	workers.Wait()
	if days != 28 {
		t.Errorf("%d days were dropped", days)
	}
}
