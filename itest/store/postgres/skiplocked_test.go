package postgres

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestAClaimLeavesOutRowsThatOthersHaveLocked(t *testing.T) {
	db := newDatabase(t)
	t.Run("D3_law_13_and_waits_for_nobody", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		marks := sqlsuite.Marks[*sql.Tx](t, s.store, "shop", "a", "b", "c")
		ending := store.Ending{}
		for i := range marks {
			marks[i].As = store.Waiting
			ending.Rows = append(ending.Rows, store.Row{Mark: i, State: store.StateReceived, Message: &semel.Message{Body: []byte("x")}})
		}
		b, _ := sqlsuite.Begin[*sql.Tx](t, s.store, store.TxOptions{}, marks)
		if r := b.Commit(t.Context(), ending); r.Outcome != store.Committed {
			t.Fatalf("%+v", r)
		}
		other, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = other.Rollback() }()
		if _, err := other.ExecContext(t.Context(), s.inSchema("select 1 from in.semel_inbox order by number limit 1 for update")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, err := s.store.Claim(ctx, store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 10, Lease: time.Minute})
		if err != nil || len(got) != 2 || got[0].Row.Key.ID != "b" || got[1].Row.Key.ID != "c" {
			t.Errorf("claimed %+v, %v; want the two rows that are not locked", got, err)
		}
	})
}

func TestADayThatIsWrittenToWhileItIsLocked(t *testing.T) {
	t.Run("trap_T68_is_not_dropped_with_what_has_come_meanwhile", func(t *testing.T) {
		s := newFixture(t, newDatabase(t), sqlstore.Options{}).useDailyPartitions(t, 6)
		s.setRetention(t, 2*aDay)
		s.processAll(t, store.Parked, uuid(-4, 1))
		if r := s.pass(t); r.Days != 3 {
			t.Fatalf("%+v was dropped, want the three days that hold nothing", r)
		}
		s.exec(t, "update in.semel_markers_1 set outcome = 1")
		writer, err := s.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = writer.Rollback() }()
		for _, text := range []string{"lock table only in.semel_markers_1 in row exclusive mode", "update in.semel_markers_1 set outcome = 3"} {
			if _, err := writer.ExecContext(t.Context(), s.inSchema(text)); err != nil {
				t.Fatal(err)
			}
		}
		committed := make(chan error, 1)
		go func() { // this goroutine commits as soon as another transaction waits to drop the partition
			waits := false
			for !waits && t.Context().Err() == nil {
				if err := s.db.QueryRowContext(t.Context(), "select exists (select 1 from pg_locks where not granted and mode = 'AccessExclusiveLock')").Scan(&waits); err != nil {
					committed <- err
					return
				}
			}
			committed <- writer.Commit()
		}()
		var days int64
		for over := false; !over; {
			days += s.pass(t).Days
			select {
			case err := <-committed:
				if over = true; err != nil {
					t.Fatal(err)
				}
			default:
			}
		}
		if days += s.pass(t).Days; days != 0 {
			t.Error("the day was dropped")
		}
		wantVerdicts(t, s.processAll(t, store.Applied, uuid(-4, 1)), isParked)
	})
}
