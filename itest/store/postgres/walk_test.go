package postgres

import (
	"testing"
	"time"

	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// runReaper calls the reaper, which removes old markers, until the pass over the markers has ended, and returns
// the sum of the results.
func (s *fixture) runReaper(t *testing.T, o store.Reaping) (sum store.Reaped) {
	t.Helper()
	o.Consumer = "billing"
	for calls, over := 0, false; !over; calls++ {
		if calls == 1000 {
			t.Fatalf("after %d calls the walk is at %+v", calls, sum.Next)
		}
		o.After = sum.Next
		done, err := s.store.Reap(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		over = sum.Add(o, done)
	}
	return sum
}

// block returns the block of the table at which the removal of markers continues.
func (s *fixture) block(t *testing.T) (n int64) {
	t.Helper()
	if err := s.db.QueryRowContext(t.Context(), s.inSchema("select walk_block from in.semel_retention where consumer = 'billing'")).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *fixture) readProgress(t *testing.T) time.Time {
	t.Helper()
	to, err := s.store.Advance(t.Context(), "billing")
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestTheReaperWalksThroughTheTable(t *testing.T) {
	db := newDatabase(t)
	t.Run("H3_trap_T69_a_walk_begins_where_the_last_one_came_to_and_goes_all_the_way_round", func(t *testing.T) {
		s := newRetentionFixture(t, db, month)
		s.readProgress(t)
		var first store.Reaped
		for after := first.Next; s.block(t) < 200 && !after.Done; after = first.Next {
			done, err := s.store.Reap(t.Context(), store.Reaping{Consumer: "billing", Most: 1000, After: after})
			if err != nil {
				t.Fatal(err)
			}
			first.Next, first.Markers = done.Next, first.Markers+done.Markers
		}
		began := s.block(t)
		if first.Markers == 0 || first.Next.Done {
			t.Fatalf("the first part of a walk removed %+v", first)
		}
		// The pass is interrupted, as if its process had died. Now markers that the pass has already walked over become
		// due for removal.
		s.exec(t, "update in.semel_markers set at = now() - interval '2 years' where ctid < '(20,0)'")
		if done, err := s.store.Reap(t.Context(), store.Reaping{Consumer: "billing", Most: 1000}); err != nil || done.Next.Block < began {
			t.Errorf("the next walk is at block %d and began at %d, %v", done.Next.Block, began, err)
		}
		s.runReaper(t, store.Reaping{Most: 1000})
		var due int
		err := s.db.QueryRowContext(t.Context(), s.inSchema(`select count(*) from in.semel_markers m join in.semel_scopes s on s.number = m.scope
where s.consumer = 'billing' and m.at < s.low and m.outcome <> 3`)).Scan(&due)
		if err != nil || due != 0 {
			t.Errorf("%d markers that are due were left, %v", due, err)
		}
		if n := s.countMarkers(t, "audit"); n != 50000 {
			t.Errorf("of another consumer %d markers are left", n)
		}
	})
	t.Run("H3_a_walk_through_many_blocks_rests_before_the_next", func(t *testing.T) {
		s := newRetentionFixture(t, db, month)
		to := s.readProgress(t)
		s.runReaper(t, store.Reaping{Most: 5000, Rest: time.Hour})
		left := s.countMarkers(t, "billing")
		if k, err := s.store.Retentions(t.Context(), "billing"); err != nil || !k[0].First.IsZero() {
			t.Errorf("it is behind since %v, and removed all up to %v, %v", k[0].First, to, err)
		}
		if err := s.store.Retain(t.Context(), store.Retention{Consumer: "billing", Keep: month / 2}); err != nil {
			t.Fatal(err)
		}
		due := s.readProgress(t)
		if k, err := s.store.Retentions(t.Context(), "billing"); err != nil || !k[0].First.Before(due) || k[0].First.Before(to) {
			t.Errorf("it is behind since %v, and removed all up to %v, %v", k[0].First, to, err)
		}
		if sum := s.runReaper(t, store.Reaping{Most: 5000, Rest: time.Hour}); sum.Markers != 0 || s.countMarkers(t, "billing") != left {
			t.Errorf("while it rests it removed %+v", sum)
		}
		if sum := s.runReaper(t, store.Reaping{Most: 5000}); sum.Markers < youngMarkers/2-10 || sum.Markers > youngMarkers/2 {
			t.Errorf("after it %d were removed, want %d but the parked ones", sum.Markers, youngMarkers/2)
		}
	})
	t.Run("H3_what_stays_is_passed_over_within_a_block", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		scope, err := s.store.Scope(t.Context(), "billing", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.store.Retain(t.Context(), store.Retention{Consumer: "billing", Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		s.exec(t, `insert into in.semel_markers (scope, id, outcome, version, at)
select $1, '\x00'::bytea || n::text::bytea, case when n % 2 = 0 then 3 else 1 end, 0, now() - interval '1 day' from generate_series(1, 20) n`, scope)
		s.readProgress(t)
		if sum := s.runReaper(t, store.Reaping{Most: 1}); sum.Markers != 10 || sum.Kept != 10 {
			t.Errorf("of ten that may go and ten that stay it says %+v", sum)
		}
	})
	t.Run("H1_the_growth_of_a_day_is_estimated_from_a_part_of_a_large_table", func(t *testing.T) {
		s := newRetentionFixture(t, db, month)
		k, err := s.store.Retentions(t.Context(), "billing")
		if err != nil || k[0].LastDay < 143 || k[0].LastDay > 145 {
			t.Errorf("of 144 markers it counts %d, %v", k[0].LastDay, err)
		}
		s.exec(t, `insert into in.semel_markers (scope, id, outcome, version, at)
select (select number from in.semel_scopes where consumer = 'billing'), '\x00ff'::bytea || n::text::bytea, 1, 0, now() from generate_series(1, 80000) n`)
		s.exec(t, `insert into in.semel_markers (scope, id, outcome, version, at)
select (select number from in.semel_scopes where consumer = 'audit'), '\x00ff'::bytea || n::text::bytea, 1, 0, now() from generate_series(1, 80000) n`)
		if k, err = s.store.Retentions(t.Context(), "billing"); err != nil || k[0].LastDay < 60_000 || k[0].LastDay > 100_000 {
			t.Errorf("of 80,144 markers it estimates %d, %v", k[0].LastDay, err)
		}
	})
}
