package postgresfaults

import (
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
)

func TestMarkersThatACrashEmpties(t *testing.T) {
	t.Run("trap_T112_markers_made_unlogged_under_a_consumer_stop_it_at_the_crash", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			server := services.StartPostgres(t, services.Options{})
			w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, server.DSN())})
			before, during := makeIDs("before", 20), makeIDs("during", 20)
			w.deliver(before...)
			w.waitApplied(before...)
			exec(t, w.db, "alter table semel_markers set unlogged")
			server.Kill()
			w.deliver(during...)
			w.untilTold(semel.EventNotReady, "")
			server.Start()
			w.untilTold(semel.EventNotReady, `alter table "public".semel_markers set logged`)
			w.expectUnacked(during...)
			if n := queryOne[int](t, w.db, "select count(*) from effects"); n != len(before) {
				t.Errorf("%d effects, want the %d of before", n, len(before))
			}
			exec(t, w.db, "alter table semel_markers set logged")
			w.waitApplied(during...)
		})
	})
}
