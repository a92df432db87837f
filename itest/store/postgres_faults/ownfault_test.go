package postgresfaults

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
	"github.com/semel-go/semel/pgxstore"
)

// eachForm runs a test with each driver, and also with pgx and queued statements.
func eachForm(t *testing.T, test func(t *testing.T, driver workload.Driver)) {
	for _, driver := range append(workload.Drivers(), workload.Driver{Name: "pgx queue", Open: openQueue}) {
		t.Run(driver.Name, func(t *testing.T) {
			t.Parallel()
			test(t, driver)
		})
	}
}

func openQueue(o workload.Options) (workload.Consumer, func(), error) {
	pool, err := pgxpool.New(context.Background(), o.DSN)
	if err != nil {
		return nil, nil, err
	}
	store, err := pgxstore.New(pool, pgxstore.Options{Isolation: workload.Levels[o.Isolation]})
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	c, err := consumer.New(store.Queued(), func(ctx context.Context, q *pgxstore.Queue, m *semel.Message) error {
		return o.Handler(ctx, func(_ context.Context, statement string, args ...any) error {
			q.Exec(statement, args...)
			return q.Err()
		}, m)
	}, o.Config)
	return c, pool.Close, err
}

func TestAMessageThatAlwaysLooksLikeContentionOrAnOutage(t *testing.T) {
	raise := func(state string) []string {
		return []string{
			`create function refuse() returns trigger language plpgsql as
			$$ begin if new.id like 'bad%' then raise exception 'as if' using errcode = '` + state + `'; end if; return new; end $$`,
			`create trigger refuse before insert on effects for each row execute function refuse()`,
		}
	}
	for name, c := range map[string]struct {
		statements []string
		bad        string // the statement that the handler of the bad message runs before its effect
		text       string
		reason     string // the reason with a driver that reports more details of the error
	}{
		"a_trigger_that_raises_40001":              {raise("40001"), "", "40001", ""},
		"a_trigger_that_raises_40P01":              {raise("40P01"), "", "40P01", ""},
		"a_trigger_that_raises_53400":              {raise("53400"), "", "53400", ""},
		"COPY_without_data":                        {nil, "copy effects (id) from stdin", "", "permanent failure"},
		"COPY_behind_what_is_no_code":              {nil, "; /* a /* b */ */ --\rcopy effects (id) from stdin", "", "permanent failure"},
		"a_statement_that_ends_its_own_connection": {nil, "select pg_terminate_backend(pg_backend_pid())", "57P01", ""},
		"a_deferred_trigger_that_raises_40001":     {deferredTrigger("40001"), "", "40001", ""},
		"a_deferred_trigger_that_raises_53400":     {deferredTrigger("53400"), "", "53400", ""},
	} {
		t.Run("C17_and_trap_T83_"+name, func(t *testing.T) {
			t.Parallel()
			eachForm(t, func(t *testing.T, driver workload.Driver) {
				w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, services.Postgres(t), c.statements...), change: func(o *consumer.Config) {
					oneWorker(o)
					o.Retry.MaxAttempts = 2
					if strings.Contains(c.bad, "copy") { // the statement waits for data until its timeout
						o.Timeout = 5 * time.Second
					}
				}, handler: func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
					if c.bad != "" && m.Identity.ID == "bad1" {
						if err := exec(ctx, c.bad); err != nil {
							return err
						}
					}
					return workload.Effect("here")(ctx, exec, m)
				}})
				deliverAround(t, w, message("bad1", `{}`))
				reason := "attempts exhausted"
				if c.reason != "" && driver.Name == "pgx queue" {
					reason = c.reason
				}
				w.waitParked("bad1", reason, c.text)
			})
		})
	}
}

// deferredTrigger returns statements that create a trigger. The trigger raises the error code at COMMIT.
func deferredTrigger(state string) []string {
	return []string{
		`create function late() returns trigger language plpgsql as
		$$ begin if new.id like 'bad%' then raise exception 'as if' using errcode = '` + state + `'; end if; return null; end $$`,
		`create constraint trigger late after insert on effects deferrable initially deferred for each row execute function late()`,
	}
}
