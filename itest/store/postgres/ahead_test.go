package postgres

import (
	"database/sql"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// SQL that makes the server reject each update that moves the changed_at of a row back.
const refuseCuts = `create function in.refuse() returns trigger language plpgsql as $$ begin raise 'no'; end $$;
create trigger refuse before update on in.semel_inbox for each row when (new.changed_at < old.changed_at) execute function in.refuse()`

func TestAClaimWhileRowsThatWereDatedAheadCannotBeCut(t *testing.T) {
	t.Run("trap_T113_takes_what_is_due", func(t *testing.T) {
		s := newFixture(t, newDatabase(t), sqlstore.Options{})
		marks := sqlsuite.Marks[*sql.Tx](t, s.store, "shop", "ahead", "due")
		ending := store.Ending{}
		for i := range marks {
			marks[i].As = store.Waiting
			ending.Rows = append(ending.Rows, store.Row{Mark: i, State: store.StateReceived, Message: &semel.Message{Body: []byte("x")}})
		}
		b, _ := sqlsuite.Begin[*sql.Tx](t, s.store, store.TxOptions{}, marks)
		if r := b.Commit(t.Context(), ending); r.Outcome != store.Committed {
			t.Fatalf("%+v", r)
		}
		s.exec(t, "update in.semel_inbox set due_at = due_at + interval '1 day', changed_at = changed_at + interval '1 day' where number = (select min(number) from in.semel_inbox)")
		s.exec(t, refuseCuts)
		for range 2 {
			got, err := s.store.Claim(t.Context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 10, Lease: time.Minute})
			if err != nil || len(got) > 1 {
				t.Fatalf("claimed %+v, %v", got, err)
			}
			if len(got) == 1 && got[0].Row.Key.ID == "due" {
				return
			}
		}
		t.Error("the row that is due is not claimed")
	})
}

func TestACallThatWasBegunWhileTheClockWasAhead(t *testing.T) {
	called := func(t *testing.T, cut bool) {
		s := newFixture(t, newDatabase(t), sqlstore.Options{})
		sqlsuite.CalledAhead[*sql.Tx](t, s.store, cut, func(days int) {
			s.exec(t, "update in.semel_inbox set called_at = called_at + $1 * interval '1 day'", days)
		}, func(days int) {
			s.exec(t, "update in.semel_inbox set due_at = due_at + $1 * interval '1 day', changed_at = changed_at + $1 * interval '1 day', locked_until = locked_until + $1 * interval '1 day'", days)
		})
	}
	t.Run("E3_trap_T113_counts_as_longer_ago_than_any_window", func(t *testing.T) { called(t, false) })
	t.Run("E3_trap_T113_also_if_the_waits_of_its_row_are_cut", func(t *testing.T) { called(t, true) })
}
