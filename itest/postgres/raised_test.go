package postgres

import (
	"testing"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/sqlstore"
)

func TestACommitThatATriggerRefusesWithAnyCode(t *testing.T) {
	s := newShop(t, fresh(t), sqlstore.Options{})
	s.exec(t, "create table in.late (code text)")
	s.exec(t, "create function in.raises_late() returns trigger language plpgsql as 'begin raise exception using errcode = new.code; end'")
	s.exec(t, "create constraint trigger late after insert on in.late deferrable initially deferred for each row execute function in.raises_late()")
	for _, code := range []string{"XX000", "58030", "F0000", "08006", "57P01"} {
		t.Run("trap_91_an_ERROR_of_COMMIT_with_an_idle_connection_is_a_rollback/"+code, func(t *testing.T) {
			marks := s.marks(t, code)
			b, _ := s.begin(t, contract.TxOptions{}, marks)
			if _, err := b.Tx(0).ExecContext(t.Context(), s.in("insert into in.late values ($1)"), code); err != nil {
				t.Fatal(err)
			}
			if r := b.Commit(t.Context(), contract.Ending{}); r.Outcome != contract.NotCommitted || s.store.Exonerates(r.Err) {
				t.Errorf("the commit says %+v", r)
			}
			s.works(t, marks)
		})
	}
}
