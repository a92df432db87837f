package pgxstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// Error codes that suggest a broken or vanished server, although a trigger raised them.
var raised = []string{"XX000", "XX001", "58000", "58030", "F0000", "08006", "08P01", "57P01"}

// createRaisers creates functions and triggers in the test's schema that raise any error code.
func (h *fixture) createRaisers(t testing.TB) {
	t.Helper()
	h.exec(t, "create function in.raises(code text) returns text language plpgsql as $$ begin raise exception 'no' using errcode = code; end $$")
	h.execAll(t, sqlsuite.Late)
}

func TestAnErrorWithAnyCodeOnAConnectionThatGoesOn(t *testing.T) {
	h := newFixture(t, openPool(t, services.Postgres(t)))
	h.createRaisers(t)
	for _, code := range raised {
		t.Run("case_1_before_COMMIT_it_is_the_messages_that_queued/"+code, func(t *testing.T) {
			r := batchOf(t, h, func(q *pgxstore.Queue) { q.Exec(h.inSchema("select in.raises($1)"), code) }).Commit(t.Context(), store.Ending{})
			if r.Outcome != store.NotCommitted || r.Culprit != 6 || h.IsStoreFault(r.Err) {
				t.Errorf("the commit says %+v, exonerated %t", r, h.IsStoreFault(r.Err))
			}
			h.wantNothing(t, makeIDs(0, 10)...)
		})
		t.Run("trap_91_an_ERROR_of_COMMIT_with_an_idle_connection_is_a_rollback/"+code, func(t *testing.T) {
			sqlsuite.RefusedAtCommit(t, h.directInstance(), h.inSchema, code)
		})
	}
	for name, statement := range map[string]string{"a_statement": "select in.raises('%s')", "a_deferred_trigger": "insert into in.late values ('%s')"} {
		for _, code := range []string{"XX000", "58030", "08006"} {
			t.Run(fmt.Sprintf("trap_T83_a_message_whose_function_raises_it_is_parked_and_others_go_on/%s_%s", name, code), func(t *testing.T) {
				h := newFixture(t, h.pool)
				h.createRaisers(t)
				counts, _ := work(t, h.Queued(), func(_ context.Context, q *pgxstore.Queue, m *semel.Message) error {
					q.ExecOne(h.inSchema(insert), m.Body)
					if string(m.Body) == "3" {
						q.Exec(h.inSchema(fmt.Sprintf(statement, code)))
					}
					return nil
				}, 20, func(c *consumer.Config) {
					c.Retry = consumer.RetryPolicy{MaxAttempts: 2, InitialDelay: 5 * time.Millisecond, MaxDelay: 10 * time.Millisecond}
				})
				if counts.Applied != 19 || counts.Parked != 1 {
					t.Errorf("%+v", counts)
				}
			})
		}
	}
}
