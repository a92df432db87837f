package pgxstore

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestAnAdoptedTableThatSwallowsRows(t *testing.T) {
	t.Run("trap_T98_a_row_that_a_trigger_keeps_out_makes_no_duplicate_of_its_message", func(t *testing.T) {
		h := newFixture(t, openPool(t, services.Postgres(t))).adopt(t, "create table in.processed (message_id varchar(50) primary key)",
			sqlstore.Adopted{ID: "message_id", Source: "shop"})
		h.exec(t, "create function in.eat() returns trigger language plpgsql as $$ begin return null; end $$")
		h.exec(t, "create trigger eats before insert on in.processed for each row when (new.message_id = '2') execute function in.eat()")
		wantCommitted(t, deliverQueued(t, h, []string{"1"}))
		b, v, err := h.Begin(t.Context(), store.TxOptions{}, h.makeMarks(t, "1", "2"))
		if err == nil {
			b.Rollback(t.Context())
			t.Fatalf("the verdicts are %v", v)
		}
		if h.Classify(err) != store.ClassDown || !strings.Contains(err.Error(), "trigger or a rule on the adopted table") {
			t.Errorf("it says %v", err)
		}
		h.exec(t, "drop trigger eats on in.processed")
		wantCommitted(t, deliverQueued(t, h, []string{"1", "2"}))
		h.wantApplied(t, "1", "2")
	})
}
