package sqlite

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/itest/worlds/workload"
	"github.com/semel-go/semel/store"
)

func TestAHandlersTimeOutHoldsInSQLite(t *testing.T) {
	t.Run("C17_a_statement_without_end_is_ended_by_its_context_and_its_neighbours_apply", func(t *testing.T) {
		st := storeOn(t, openFile(t, newFile(t), pragmas+foreignKeys))
		inlet := workload.NewInlet()
		c := workload.Config(inlet)
		c.Timeout, c.Retry.MaxAttempts = 200*time.Millisecond, 2
		running, err := consumer.New(st, func(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
			if string(m.Body) != "7" {
				return nil
			}
			_, err := tx.ExecContext(ctx, "with recursive c(n) as (select 1 union all select n + 1 from c) select count(*) from c")
			return err
		}, c)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			m := workload.Message(i)
			m.Body = []byte(string(rune('0' + i)))
			inlet.Put(m)
		}
		inlet.End()
		if err := running.Run(t.Context()); err != nil {
			t.Error(err)
		}
		rows, err := st.Rows(t.Context(), store.RowFilter{})
		if n := running.Counts(); n.Applied != 19 || n.Parked != 1 || err != nil || rows[0].Reason != semel.ReasonExhausted {
			t.Errorf("%+v, rows %+v (%v)", n, rows, err)
		}
	})
}
