package postgres

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// rowOf inserts an inbox row for a marker. The parameter ago says how long ago the row was changed.
func (s *fixture) rowOf(t *testing.T, state, conflict, ago string) {
	t.Helper()
	s.exec(t, `insert into in.semel_inbox (revision, scope, id, conflict, version, surrogate, state, reason, topic, partition, "offset",
  broker_id, type, schema, envelope, payload, received_at, changed_at, started, finished, repeated, first_error, last_error)
select 1, scope, id, decode($2, 'hex'), 0, false, $1, '', '', 0, 0, '', '', '', '{}', 'x', at, now() - $3::text::interval, 0, 0, 0, '', '' from in.semel_markers_1`, state, conflict, ago)
}

// createNextDays creates the daily partitions of the next ten days.
func (s *fixture) createNextDays(t *testing.T) {
	t.Helper()
	const day = "in.semel_day_bound('uuidv7', (now() at time zone 'UTC')::date + "
	s.exec(t, "create table in.coming partition of in.semel_markers_1 for values from ("+day+"4)) to ("+day+"10))")
	s.exec(t, "update in.semel_dated set high_day = (now() at time zone 'UTC')::date + 10, high = "+day+"10)")
}

func TestADayThatStays(t *testing.T) {
	db := newDatabase(t)
	open := func(t *testing.T, back int) *fixture {
		s := newFixture(t, db, sqlstore.Options{}).useDailyPartitions(t, back)
		s.setRetention(t, 2*aDay)
		return s
	}
	t.Run("H3_what_was_dropped_stays_dropped_under_a_longer_retention", func(t *testing.T) {
		s := open(t, 6)
		old := uuid(-4, 1)
		s.processAll(t, store.Applied, old)
		if r := s.pass(t); r.Days != 4 {
			t.Fatalf("the pass removed %+v", r)
		}
		s.setRetention(t, 30*aDay)
		s.pass(t)
		wantVerdicts(t, s.processAll(t, store.Applied, old), isOld)
		if err := s.store.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("trap_T68_while_a_conflict_of_it_waits_for_a_person", func(t *testing.T) {
		s := open(t, 6)
		s.processAll(t, store.Applied, uuid(-4, 1))
		s.rowOf(t, "PARKED", "01", "10 days")
		if r := s.pass(t); r.Days != 3 || r.Rows != 0 || len(s.listPartitions(t)) != 7 {
			t.Errorf("the pass removed %+v, and %d days stand", r, len(s.listPartitions(t)))
		}
		wantVerdicts(t, s.processAll(t, store.Applied, uuid(-4, 1)), isApplied)
	})
	t.Run("H3_while_a_message_of_it_has_ended_lately", func(t *testing.T) {
		s := open(t, 6)
		s.processAll(t, store.Applied, uuid(-4, 1))
		s.rowOf(t, "COMPLETED", "", "1 hour")
		if r := s.pass(t); r.Days != 3 || r.Rows != 0 {
			t.Errorf("the pass removed %+v, and it ended an hour ago", r)
		}
		s.exec(t, "update in.semel_inbox set changed_at = now() - interval '3 days'")
		if r := s.pass(t); r.Days != 1 || r.Rows != 1 {
			t.Errorf("the pass removed %+v, and it ended three days ago", r)
		}
	})
}

func TestWhatStandsAside(t *testing.T) {
	db := newDatabase(t)
	of := func(t *testing.T, s *fixture, source string, as store.Outcome, id string) store.Verdict {
		marks := sqlsuite.Marks[*sql.Tx](t, s.Instance.Store, source, id)
		marks[0].As = as
		b, v := sqlsuite.Begin[*sql.Tx](t, s.Instance.Store, store.TxOptions{}, marks)
		if as == store.Applied {
			b.Rollback(t.Context())
		} else if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed {
			t.Fatalf("the commit says %+v", r)
		}
		return v[0]
	}
	t.Run("trap_75_is_of_its_source", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{}).useDailyPartitions(t, 0)
		past, coming := uuid(-3650, 1), uuid(5, 1)
		for _, id := range []string{past, coming} {
			wantVerdicts(t, []store.Verdict{of(t, s, "shop", store.Parked, id)}, isFresh)
		}
		wantVerdicts(t, []store.Verdict{of(t, s, "mall", store.Applied, past), of(t, s, "mall", store.Applied, coming)}, isOld, isAhead)
		wantVerdicts(t, []store.Verdict{of(t, s, "mall", store.Parked, past)}, isFresh)
		s.createNextDays(t)
		wantVerdicts(t, []store.Verdict{of(t, s, "shop", store.Applied, coming), of(t, s, "mall", store.Applied, coming)}, isParked, isFresh)
	})
	t.Run("trap_88_goes_when_its_day_is_gone_and_not_while_it_is_to_come", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{}).useDailyPartitions(t, 3)
		s.setRetention(t, 2*aDay)
		past, coming := uuid(-3650, 1), uuid(20, 1)
		for _, id := range []string{past, coming} {
			wantVerdicts(t, []store.Verdict{of(t, s, "shop", store.Discarded, id)}, isFresh)
		}
		s.exec(t, "update in.semel_markers_1 set at = now() - interval '10 days'")
		if r := s.pass(t); r.Markers != 1 || r.Kept != 1 {
			t.Errorf("the pass removed %+v", r)
		}
		discarded := store.Verdict{Kind: store.Seen, Was: store.Discarded}
		wantVerdicts(t, []store.Verdict{of(t, s, "shop", store.Applied, past), of(t, s, "shop", store.Applied, coming)}, isOld, discarded)
	})
	t.Run("trap_88_is_no_id_whose_day_was_made_meanwhile_or_that_is_there", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{}).useDailyPartitions(t, 3)
		scope, err := s.Instance.Store.Scope(t.Context(), "billing", "shop", 0)
		if err != nil {
			t.Fatal(err)
		}
		key := func(id string) []byte {
			return queryOne[[]byte](t, db, "select '\\x01'::bytea || decode(replace($1, '-', ''), 'hex')", id)
		}
		past, present, gone := uuid(-3650, 1), uuid(0, 1), uuid(-2, 1)
		s.processAll(t, store.Applied, gone)
		// the low-water mark has passed the day, but the day's partition still exists
		s.exec(t, "update in.semel_dated set low_day = (now() at time zone 'UTC')::date, low = in.semel_day_bound('uuidv7', (now() at time zone 'UTC')::date - 1)")
		for id, want := range map[string]int{past: 1, present: 0, gone: 0} {
			done, err := db.ExecContext(t.Context(), sqlstore.DatedStatements(s.store, sqlform.Revision12{}).Aside,
				[]int64{scope}, [][]byte{key(id)}, []int16{int16(store.Parked)}, []int16{0}, [][]byte{nil}, [][]byte{nil})
			if err != nil {
				t.Fatal(err)
			}
			if n, err := done.RowsAffected(); err != nil || int(n) != want {
				t.Errorf("of %s %d markers are written aside, want %d, %v", id, n, want, err)
			}
		}
	})
	t.Run("G4_is_shown_by_its_id", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{}).useDailyPartitions(t, 0)
		id := uuid(-3650, 1)
		of(t, s, "shop", store.Parked, id)
		m, there, err := s.store.Marker(t.Context(), semel.Key{Consumer: "billing", Source: "shop", ID: id})
		if err != nil || !there || m.Outcome != store.Parked {
			t.Errorf("its marker is %+v, %t, %v", m, there, err)
		}
	})
	t.Run("law_13_is_none_of_a_day_that_should_have_been_made", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{}).useDailyPartitions(t, 0)
		marks := sqlsuite.Marks[*sql.Tx](t, s.Instance.Store, "shop", uuid(9, 1))
		for days, ready := range map[int]bool{1: false, 2: true} {
			s.exec(t, "update in.semel_dated set high_day = (now() at time zone 'UTC')::date + $1::int, high = in.semel_day_bound('uuidv7', (now() at time zone 'UTC')::date + $1::int)", days)
			b, v, err := s.Instance.Store.Begin(t.Context(), store.TxOptions{}, marks)
			if ready {
				if err != nil {
					t.Fatal(err)
				}
				b.Rollback(t.Context())
				wantVerdicts(t, v, isAhead)
			} else if err == nil || s.Instance.Store.Classify(err) != store.ClassDown {
				t.Errorf("the days end before tomorrow, and it says %v", err)
			}
		}
	})
	t.Run("trap_88_is_met_in_a_transaction_of_a_callers_own", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{}).useDailyPartitions(t, 0)
		id := uuid(5, 1)
		of(t, s, "shop", store.Parked, id)
		s.createNextDays(t)
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		marks := sqlsuite.Marks[*sql.Tx](t, s.Instance.Store, "shop", id)
		v, err := s.store.MarkIn(t.Context(), tx, marks)
		if err != nil || v[0] != isParked {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

func TestAClaimOfAMessageThatStandsAside(t *testing.T) {
	const (
		inner = `insert into in.semel_markers_1 (scope, id, outcome, version, at)
			select scope, substr(id, 2), 1, 0, now() from in.semel_markers_1 where get_byte(id, 0) = 5`
		swap = `with aside as (update in.semel_markers_1 set outcome = 1 where get_byte(id, 0) = 5 returning scope, id, version, sum),
			rows as (update in.semel_inbox set id = substr(id, 2))
			insert into in.semel_markers_1 (scope, id, outcome, version, sum, at) select scope, substr(id, 2), 2, version, sum, now() from aside`
	)
	for name, statement := range map[string]string{
		"law_1_is_done_where_its_day_has_it":              inner,
		"law_1_is_done_where_what_stands_aside_has_ended": swap,
		"law_12_runs_where_nothing_has_it":                "",
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, newDatabase(t), sqlstore.Options{}).useDailyPartitions(t, 0)
			id := uuid(5, 1)
			marks := sqlsuite.Marks[*sql.Tx](t, s.Instance.Store, "shop", id)
			marks[0].As = store.Parked
			b, v := sqlsuite.Begin[*sql.Tx](t, s.Instance.Store, store.TxOptions{}, marks)
			wantVerdicts(t, v, isFresh)
			b.Commit(t.Context(), store.Ending{Rows: []store.Row{{State: store.StateParked, Message: &semel.Message{}}}})
			rows, err := s.store.Rows(t.Context(), store.RowFilter{})
			if err != nil || len(rows) != 1 {
				t.Fatal(rows, err)
			}
			if err := errors.Join(s.store.Requeue(t.Context(), store.Act{Verb: "retry", Who: "test", Why: "test"}, rows[0].Seen())...); err != nil {
				t.Fatal(err)
			}
			s.createNextDays(t)
			if statement != "" {
				s.exec(t, statement)
			}
			got, err := s.store.Claim(t.Context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 1, Lease: time.Minute})
			if err != nil || len(got) != 1 {
				t.Fatal(got, err)
			}
			marks[0].As, marks[0].Claim = store.Applied, got[0].Claim
			verdicts := sqlsuite.Asked[*sql.Tx](t, s.store, marks...)
			if done := verdicts[0].Kind != store.Fresh; done != (statement != "") {
				t.Errorf("the verdict is %+v", verdicts[0])
			}
		})
	}
}

func TestWhoReapsDays(t *testing.T) {
	t.Run("trap_T66_of_two_that_drop_one_does", func(t *testing.T) {
		s := newFixture(t, newDatabase(t), sqlstore.Options{}).useDailyPartitions(t, 6)
		s.setRetention(t, 2*aDay)
		if err := s.reaper().Progressed(t.Context(), "billing", nil); err != nil {
			t.Fatal(err)
		}
		other, err := s.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Rollback() }()
		statements := sqlstore.DatedStatements(s.store, sqlform.Revision12{})
		rows, err := other.QueryContext(t.Context(), statements.Impatience) // with the same setting as a process that drops partitions
		if err != nil {
			t.Fatal(err)
		}
		_ = rows.Close()
		began := time.Now()
		if r := s.pass(t); r.Days != 0 {
			t.Errorf("beside another, %+v was dropped", r)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it waited %v", took)
		}
		if err := other.Rollback(); err != nil {
			t.Fatal(err)
		}
		if r := s.pass(t); r.Days != 4 {
			t.Errorf("the next pass dropped %+v", r)
		}
	})
}
