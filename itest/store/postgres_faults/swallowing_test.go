package postgresfaults

import (
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
)

func TestMarkersThatAreSwallowed(t *testing.T) {
	for name, c := range map[string]struct{ damage, mend string }{
		"trigger": {`create trigger eats before insert on semel_markers for each row execute function eat()`, `drop trigger eats on semel_markers`},
		"rule":    {`create rule eats as on insert to semel_markers do instead nothing`, `drop rule eats on semel_markers`},
	} {
		t.Run("trap_T98_while_a_consumer_runs_pause_it_and_are_told_with_what_to_do/"+name, func(t *testing.T) {
			eachDriver(t, func(t *testing.T, driver workload.Driver) {
				w := begin(t, settings{driver: driver, change: oneWorker, dsn: migrateDatabase(t, services.Postgres(t),
					`create function eat() returns trigger language plpgsql as $$ begin return null; end $$`)})
				w.deliver("before")
				w.waitApplied("before")
				exec(t, w.db, c.damage)
				ids := makeIDs("m", 10)
				w.deliver(ids...)
				w.untilTold(semel.EventNotReady, "semel_markers has the "+name+" eats")
				w.untilTold(semel.EventNotReady, "drop "+name+" eats on")
				if ready, why := w.consumer.Ready(); ready || why == "" {
					t.Errorf("ready %t, because %q", ready, why)
				}
				w.expectUnacked(ids...)
				exec(t, w.db, c.mend)
				w.waitApplied(ids...)
			})
		})
	}
}
