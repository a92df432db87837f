package postgresfaults

import (
	"context"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
)

func TestTheServerLimitsStatements(t *testing.T) {
	t.Run("C17_a_handler_that_ignores_its_context_is_ended_by_the_server_and_keeps_its_connection", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, services.Postgres(t)), change: func(c *consumer.Config) {
				oneWorker(c)
				c.Timeout, c.Retry.MaxAttempts = brief, 2
			}, handler: func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
				if m.Identity.ID == "slow" {
					return exec(context.WithoutCancel(ctx), `select pg_sleep(35)`)
				}
				return workload.Effect("here")(ctx, exec, m)
			}})
			deliverAround(t, w, message("slow", `{}`))
			w.waitParked("slow", "attempts exhausted", "timeout")
			if stuck, down := w.countEvents(eventkind.Stuck, ""), w.countEvents(semel.EventNotReady, ""); stuck+down > 0 {
				t.Errorf("told %d times that the handler does not end, %d times not ready", stuck, down)
			}
		})
	})
	t.Run("trap_T82_a_commit_that_waits_for_its_standby_is_not_cut_by_the_limit_of_statements", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			server := services.StartPostgres(t, services.Options{Standby: true})
			dsn := migrateDatabase(t, server.DSN())
			w := begin(t, settings{driver: driver, dsn: dsn, change: func(c *consumer.Config) {
				oneWorker(c)
				c.Timeout = brief
			}})
			w.deliver("before")
			w.waitApplied("before")
			server.Standby().Freeze()
			w.deliver("waits")
			waitUntil(t, "the commit has waited longer than a statement may", func() bool {
				return queryOne[int](t, w.db, `select count(*) from pg_stat_activity where wait_event = 'SyncRep' and clock_timestamp() > state_change + interval '4s'`) > 0
			})
			w.expectUnacked("waits")
			server.Standby().Thaw()
			w.waitApplied("waits")
		})
	})
}
