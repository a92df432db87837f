package postgresfaults

import (
	"testing"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// If PgBouncer loses its server connection at COMMIT, it returns an error of its own and may keep the client
// connection. PgBouncer does not know whether the commit succeeded.
func TestAPoolerThatLosesItsServerAtCommit(t *testing.T) {
	for _, cut := range []struct {
		name string
		rule func(p *pgproxy.Proxy) *pgproxy.Rule
		// The number of handler runs for a message of this commit.
		runs int
	}{
		{"trap_89_the_commit_happened_and_markers_tell", func(p *pgproxy.Proxy) *pgproxy.Rule { return p.CutReply(pgproxy.Nth(1, pgproxy.Commit)) }, 1},
		{"trap_90_the_commit_did_not_happen_and_markers_tell", func(p *pgproxy.Proxy) *pgproxy.Rule { return p.CutRequest(pgproxy.Nth(1, pgproxy.Commit)) }, 2},
	} {
		t.Run(cut.name, func(t *testing.T) {
			eachDriver(t, func(t *testing.T, driver workload.Driver) {
				dsn := migrateDatabase(t, services.Postgres(t))
				proxy := pgproxy.Start(t, dsn)
				w := begin(t, settings{driver: driver, dsn: dsn,
					through: services.StartPgBouncer(t, proxy.DSN()) + "&default_query_exec_mode=exec",
					change:  func(c *consumer.Config) { c.Workers = 1 }})
				before, during, after := makeIDs("before", 20), makeIDs("during", 20), makeIDs("after", 20)
				w.deliver(before...)
				w.waitApplied(before...)
				w.waitRetention()
				rule := cut.rule(proxy)
				w.deliver(during...)
				w.waitApplied(during...)
				if told := w.countEvents(eventkind.Unknown, ""); told != 1 || rule.Hits() != 1 {
					t.Errorf("%d commits were cut, %d were reported with unknown outcome, want 1 and 1", rule.Hits(), told)
				}
				again := 0
				for _, id := range during {
					if n := len(w.attemptsOf(id)); n == cut.runs {
						again++
					} else if n != 1 {
						t.Errorf("the handler ran %d times for %s, want 1 or %d", n, id, cut.runs)
					}
				}
				if again == 0 {
					t.Errorf("no message ran %d times", cut.runs)
				}
				w.deliver(after...)
				w.waitApplied(after...)
			})
		})
	}
}
