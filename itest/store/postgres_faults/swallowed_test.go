package postgresfaults

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
	"github.com/semel-go/semel/store"
)

// SQL that creates a function that fails with a given error code.
const failing = `create function fail(code text) returns void language plpgsql as $$ begin raise exception 'no' using errcode = code; end $$`

// swallower returns a handler that writes its effect. For the message "bad", the handler also runs a failing statement
// and ignores the error, but only as often as the parameter times says.
func swallower(times int64, statement string, args ...any) workload.Handler {
	var swallowed atomic.Int64
	return func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
		if err := workload.Effect("here")(ctx, exec, m); err != nil {
			return err
		}
		if m.Identity.ID == "bad" && swallowed.Add(1) <= times {
			_ = exec(ctx, statement, args...)
		}
		return nil
	}
}

// noticesIgnored reports whether the driver's store notices an error that the handler ignored.
func noticesIgnored(driver workload.Driver) bool { return driver.Name == "pgx" }

func TestAHandlerThatSwallows(t *testing.T) {
	few := func(c *consumer.Config) {
		oneWorker(c)
		c.Retry.MaxAttempts = 3
	}
	for _, code := range []string{"40P01", "40001", "55P03"} {
		t.Run(code, func(t *testing.T) {
			t.Run("trap_97_contention_is_nobodys_attempt_where_the_driver_tells", func(t *testing.T) { testNotCharged(t, code, few) })
		})
	}
	t.Run("law_13_a_full_disk_is_nobodys_attempt_where_the_driver_tells", func(t *testing.T) { testNotCharged(t, "53100", few) })
	t.Run("law_13_a_lost_connection_is_nobodys_attempt", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, services.Postgres(t)), change: few, handler: swallower(2, `select pg_terminate_backend(pg_backend_pid())`)})
			deliverAround(t, w, message("bad", `{}`))
			w.waitApplied("bad")
		})
	})
	for _, c := range []struct{ code, reason string }{{"23505", "permanent failure"}, {"57014", "attempts exhausted"}} {
		t.Run(c.code, func(t *testing.T) {
			t.Run("trap_95_a_statement_error_ends_its_message_as_if_it_had_been_returned", func(t *testing.T) {
				eachDriver(t, func(t *testing.T, driver workload.Driver) {
					w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, services.Postgres(t), failing), change: few, handler: swallower(100, `select fail($1)`, c.code)})
					deliverAround(t, w, message("bad", `{}`))
					if noticesIgnored(driver) {
						w.waitParked("bad", c.reason, c.code)
					} else {
						w.waitParked("bad", "attempts exhausted", "the store does not know")
					}
				})
			})
		})
	}
	t.Run("trap_96_a_COMMIT_or_ROLLBACK_of_its_own_parks_its_message", func(t *testing.T) {
		for _, statement := range []string{"commit", "rollback"} {
			eachDriver(t, func(t *testing.T, driver workload.Driver) {
				w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, services.Postgres(t)), change: few, handler: swallower(100, statement)})
				deliverAround(t, w, message("bad", `{}`))
				w.waitParked("bad", "permanent failure", "")
			})
		}
	})
}

// testNotCharged tests an error that no message caused and that the handler ignored twice. The error must not
// count as an attempt of the message; if the driver does not report the error, two attempts are counted.
func testNotCharged(t *testing.T, code string, change func(*consumer.Config)) {
	eachDriver(t, func(t *testing.T, driver workload.Driver) {
		w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, services.Postgres(t), failing), change: change, handler: swallower(2, `select fail($1)`, code)})
		deliverAround(t, w, message("bad", `{}`))
		want := "[1 1 1]"
		if !noticesIgnored(driver) {
			want = "[1 2 3]"
		}
		if w.countEffects("bad") != 1 || w.marker("bad") != int(store.Applied) || fmt.Sprint(w.attemptsOf("bad")) != want {
			t.Errorf("%d effects, marker %d, ran as attempts %v, want %s", w.countEffects("bad"), w.marker("bad"), w.attemptsOf("bad"), want)
		}
	})
}
