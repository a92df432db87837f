package postgresfaults

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// The number of times that another transaction's lock blocks a message while other messages commit. The message is
// blocked more often than the number of attempts.
const meetings = 6

func TestALockThatSomebodyHoldsForLong(t *testing.T) {
	t.Run("C17_and_case_1_charges_nobody_also_while_others_commit", func(t *testing.T) {
		eachForm(t, func(t *testing.T, driver workload.Driver) {
			dsn := newCounterDatabase(t)
			w := begin(t, settings{driver: driver, dsn: dsn, change: func(c *consumer.Config) {
				oneWorker(c)
				c.Lanes = consumer.LanesNone
				c.Retry.MaxAttempts = 2
			}, handler: func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
				if m.Identity.ID == "waits" {
					if err := countImpatiently(ctx, exec); err != nil {
						return err
					}
				}
				return workload.Effect("here")(ctx, exec, m)
			}})
			stranger := w.lockCounter()
			w.deliver("waits")
			for n := range meetings {
				waitUntil(t, fmt.Sprintf("the lock is met %d times", n+1), func() bool { return w.countEvents(eventkind.Contended, "55P03") > n })
				good := fmt.Sprint("good", n)
				w.deliver(good)
				w.waitApplied(good)
			}
			w.expectUnacked("waits")
			if err := stranger.Rollback(); err != nil {
				t.Fatal(err)
			}
			w.waitApplied("waits")
		})
	})
}

func TestARowThatOthersKeepChanging(t *testing.T) {
	t.Run("case_2_and_law_13_charges_nobody_also_while_others_commit", func(t *testing.T) {
		eachForm(t, func(t *testing.T, driver workload.Driver) {
			dsn := newCounterDatabase(t)
			stranger := look(t, dsn)
			var met atomic.Int32
			w := begin(t, settings{driver: driver, dsn: dsn, isolation: sql.LevelRepeatableRead, change: func(c *consumer.Config) {
				oneWorker(c)
				c.Lanes = consumer.LanesNone
				c.Retry.MaxAttempts = 2
			}, handler: func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
				if m.Identity.ID == "waits" {
					if met.Add(1) <= meetings {
						if _, err := stranger.ExecContext(ctx, countOne); err != nil {
							return err
						}
					}
					if err := exec(ctx, countOne); err != nil {
						return err
					}
				}
				return workload.Effect("here")(ctx, exec, m)
			}})
			w.deliver("waits")
			for n := range meetings {
				waitUntil(t, fmt.Sprintf("the row is changed underneath %d times", n+1), func() bool { return w.countEvents(eventkind.Contended, "40001") > n })
				good := fmt.Sprint("good", n)
				w.deliver(good)
				w.waitApplied(good)
			}
			w.waitApplied("waits")
			w.wantCounter(meetings + 1)
		})
	})
}
