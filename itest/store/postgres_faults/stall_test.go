package postgresfaults

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// runStalled runs a consumer behind a proxy that withholds the server's reply to one statement.
func runStalled(t *testing.T, driver workload.Driver, match pgproxy.Match, told semel.EventKind) {
	t.Helper()
	dsn := migrateDatabase(t, services.Postgres(t))
	proxy := pgproxy.Start(t, dsn)
	w := begin(t, settings{driver: driver, dsn: dsn, through: proxy.DSN(), change: func(c *consumer.Config) {
		oneWorker(c)
		c.CommitTimeout, c.Timeout = brief, brief
		c.MaxInMemoryWait, c.Retry.MaxDelay = 300*time.Millisecond, 300*time.Millisecond
	}})
	w.deliver("before")
	w.waitApplied("before")
	w.waitRetention()
	rule := proxy.HoldReply(pgproxy.Nth(1, match))
	t.Cleanup(rule.Remove)
	ids := makeIDs("m", 10)
	w.deliver(ids...)
	w.waitSettled(ids...)
	for _, id := range ids {
		if n := w.countEffects(id); n != 1 {
			t.Errorf("%s has %d effects", id, n)
		}
	}
	if w.countEvents(told, "") == 0 {
		t.Errorf("nobody was told %q", told)
	}
	if rule.Hits() != 1 {
		t.Errorf("%d replies were kept", rule.Hits())
	}
}

func TestAReplyThatNeverComes(t *testing.T) {
	for name, c := range map[string]struct {
		match pgproxy.Match
		told  semel.EventKind
	}{
		"to the marks":  {pgproxy.Containing("semel_markers"), semel.EventNotReady},
		"to an effect":  {pgproxy.Containing("insert into effects"), eventkind.Retry},
		"to the COMMIT": {pgproxy.Commit, eventkind.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("trap_132_ends_with_its_time_out_and_work_goes_on", func(t *testing.T) {
				eachDriver(t, func(t *testing.T, driver workload.Driver) { runStalled(t, driver, c.match, c.told) })
			})
		})
	}
}

func TestAHandlerThatNeedsASecondConnection(t *testing.T) {
	t.Run("trap_131_of_a_pool_of_one_gets_an_error_and_its_neighbours_go_on", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			var outside workload.Exec
			w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, services.Postgres(t)), connections: 1, outside: &outside, change: func(c *consumer.Config) {
				oneWorker(c)
				c.Timeout, c.Retry.MaxAttempts = brief, 2
			}, handler: func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
				if m.Identity.ID == "greedy" {
					return outside(ctx, `select 1`)
				}
				return workload.Effect("here")(ctx, exec, m)
			}})
			deliverAround(t, w, message("greedy", `{}`))
			w.waitParked("greedy", "attempts exhausted", "timeout")
		})
	})
}

func TestTheConnectionsOfAConsumer(t *testing.T) {
	t.Run("trap_131_are_one_a_worker_and_two_more", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			dsn := migrateDatabase(t, services.Postgres(t))
			proxy := pgproxy.Start(t, dsn)
			var together atomic.Int64
			all := make(chan struct{})
			w := begin(t, settings{driver: driver, dsn: dsn, through: proxy.DSN(), connections: 50, change: func(c *consumer.Config) {
				c.Workers, c.Batch.MaxSize = 4, 20
			}, handler: func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
				if together.Add(1) == 4 { // each of the four workers is in its first handler
					close(all)
				}
				<-all
				return workload.Effect("here")(ctx, exec, m)
			}})
			ids := makeIDs("m", 1000)
			w.deliver(ids...)
			w.waitApplied(ids...)
			if n := proxy.Counts().Connections; n < 4 || n > 6 {
				t.Errorf("%d connections for 4 workers", n)
			}
		})
	})
	t.Run("law_11_eight_workers_share_a_pool_of_one", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, services.Postgres(t)), connections: 1, change: func(c *consumer.Config) {
				c.Workers, c.Batch.MaxSize = 8, 20
			}})
			ids := makeIDs("m", 500)
			w.deliver(ids...)
			w.waitApplied(ids...)
			if n := w.countEvents(semel.EventNotReady, ""); n != 0 {
				t.Errorf("the store was called down %d times", n)
			}
		})
	})
}
