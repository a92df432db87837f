package postgresfaults

import (
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
)

func TestAFailoverToAStandbyThatLagged(t *testing.T) {
	t.Run("trap_105_loses_marker_and_effect_together_so_that_a_copy_is_applied_once", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			server := services.StartPostgres(t, services.Options{Standby: true})
			dsn := migrateDatabase(t, server.FailoverDSN())
			w := begin(t, settings{driver: driver, dsn: dsn, through: dsn + "&options=-c%20synchronous_commit%3Dlocal"})
			kept, lost := makeIDs("kept", 10), makeIDs("lost", 10)
			w.deliver(kept...)
			w.waitApplied(kept...)
			// The next commit is synchronous. When a synchronous commit returns, the standby also has all earlier
			// commits.
			exec(t, w.db, `create table barrier ()`)
			server.Standby().Freeze()
			w.deliver(lost...)
			w.waitApplied(lost...) // the messages were acked, so nobody can detect that they are lost
			server.Kill()
			server.Standby().Kill() // like a loss of data in the kernel's buffers
			server.Standby().Start()
			server.Standby().Promote()
			for _, id := range lost {
				if effects, marker := w.countEffects(id), w.marker(id); effects != 0 || marker != 0 {
					t.Errorf("%s has %d effects and the marker %d; the test wants it lost", id, effects, marker)
				}
			}
			w.deliver(lost[0])
			waitUntil(t, "the copy is settled", func() bool { _, n := w.inlet.Settled(lost[0]); return n == 2 })
			if n := w.countEffects(lost[0]); n != 1 {
				t.Errorf("the copy has %d effects", n)
			}
			w.deliver("after")
			w.waitApplied(append(kept, "after")...)
		})
	})
}
