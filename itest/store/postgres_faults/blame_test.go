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

// deliverAround delivers the bad messages in the middle of ten good messages, in one batch. The function checks
// that the good messages are applied and that the consumer continues to work.
func deliverAround(t *testing.T, w *world, bad ...*semel.Message) {
	t.Helper()
	good := makeIDs("good", 10)
	var all []*semel.Message
	for i, id := range good {
		if i == 5 {
			all = append(all, bad...)
		}
		all = append(all, message(id, `{}`))
	}
	w.inlet.Put(all...)
	w.waitApplied(good...)
	for _, m := range bad {
		id, _ := m.Headers.Get("id")
		w.waitSettled(string(id))
	}
	w.deliver("afterwards")
	w.waitApplied("afterwards")
}

// oneWorker makes each batch contain all messages that were delivered together.
func oneWorker(c *consumer.Config) { c.Workers = 1 }

// twoAttempts sets one worker and two attempts for each message.
func twoAttempts(c *consumer.Config) {
	oneWorker(c)
	c.Retry.MaxAttempts = 2
}

// refusedAtCommit makes a deferred trigger fail for one message of a batch. The function checks that only this message
// is parked, with the error code of the parameter state.
func refusedAtCommit(t *testing.T, driver workload.Driver, does, state string) {
	dsn := migrateDatabase(t, services.Postgres(t),
		`create function late() returns trigger language plpgsql as
		$$ begin if new.id like 'bad%' then `+does+`; end if; return null; end $$`,
		`create constraint trigger late after insert on effects deferrable initially deferred for each row execute function late()`)
	w := begin(t, settings{driver: driver, dsn: dsn, change: twoAttempts})
	deliverAround(t, w, message("bad1", `{}`))
	w.waitParked("bad1", "attempts exhausted", state)
}

func TestAMessageThatTheDatabaseRefuses(t *testing.T) {
	t.Run("case_1_RAISE_in_a_trigger_is_charged_to_the_message_that_met_it", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			dsn := migrateDatabase(t, services.Postgres(t),
				`create function refuse() returns trigger language plpgsql as
				$$ begin if new.id like 'bad%' then raise exception 'no % here', new.id; end if; return new; end $$`,
				`create trigger refuse before insert on effects for each row execute function refuse()`)
			w := begin(t, settings{driver: driver, dsn: dsn, change: oneWorker})
			deliverAround(t, w, message("bad1", `{}`), message("bad2", `{}`))
			w.waitParked("bad1", "permanent failure", "no bad1 here")
			w.waitParked("bad2", "permanent failure", "no bad2 here")
			if runs := w.attemptsOf("bad1"); len(runs) != 1 {
				t.Errorf("the handler ran for bad1 as attempts %v, want once", runs)
			}
		})
	})
	t.Run("trap_96_a_procedure_that_commits_is_refused_for_good_at_the_first_attempt", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			dsn := migrateDatabase(t, services.Postgres(t), `create procedure settle() language plpgsql as $$ begin commit; end $$`)
			w := begin(t, settings{driver: driver, dsn: dsn, change: oneWorker, handler: func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
				if err := workload.Effect("here")(ctx, exec, m); err != nil || m.Identity.ID != "bad1" {
					return err
				}
				return exec(ctx, `call settle()`)
			}})
			deliverAround(t, w, message("bad1", `{}`))
			w.waitParked("bad1", "permanent failure", "2D000")
			if runs := w.attemptsOf("bad1"); len(runs) != 1 {
				t.Errorf("the handler ran for bad1 as attempts %v, want once", runs)
			}
		})
	})
	t.Run("case_1_a_deferred_constraint_that_fails_at_COMMIT_is_bisected_to_its_message", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			dsn := migrateDatabase(t, services.Postgres(t),
				`create table accounts (id text primary key)`,
				`create table charges (account text references accounts deferrable initially deferred)`)
			w := begin(t, settings{driver: driver, dsn: dsn, change: oneWorker, handler: func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
				if err := workload.Effect("here")(ctx, exec, m); err != nil || string(m.Body) == `{}` {
					return err
				}
				return exec(ctx, `insert into charges values ($1)`, string(m.Body))
			}})
			deliverAround(t, w, message("bad1", `nobody`), message("bad2", `no one`))
			w.waitParked("bad1", "permanent failure", "charges_account_fkey")
			w.waitParked("bad2", "permanent failure", "charges_account_fkey")
		})
	})
	t.Run("trap_100_a_statement_cancelled_at_COMMIT_is_bisected_and_its_connection_serves_on", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			refusedAtCommit(t, driver, `perform pg_cancel_backend(pg_backend_pid()); perform pg_sleep(30)`, "57014")
		})
	})
}

func TestADeferredTriggerWithACodeOfItsOwn(t *testing.T) {
	t.Run("case_1_a_COMMIT_refused_with_an_unknown_code_is_bisected_and_stops_nobody_else", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			refusedAtCommit(t, driver, `raise exception 'odd' using errcode = 'ZZ001'`, "ZZ001")
		})
	})
}

func TestBodiesThatTheDatabaseCannotHold(t *testing.T) {
	for _, c := range []struct{ id, column, body, state string }{
		{"nul", "note", "a\x00b", "22021"},
		{"invalid", "note", "a\xff\xfe", "22021"},
		{"escaped", "document", `{"a":"\u0000"}`, "22P05"},
		{"surrogate", "document", `{"a":"\ud800"}`, "22P02"},
		{"number", "document", `1e400000`, "22003"},
	} {
		t.Run(c.id, func(t *testing.T) {
			eachDriver(t, func(t *testing.T, driver workload.Driver) { unholdable(t, driver, c.id, c.column, c.body, c.state) })
		})
	}
}

func unholdable(t *testing.T, driver workload.Driver, id, column, body, state string) {
	handler := func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
		if err := workload.Effect("here")(ctx, exec, m); err != nil {
			return err
		}
		return exec(ctx, `insert into texts (`+column+`) values ($1)`, string(m.Body))
	}
	w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, services.Postgres(t), `create table texts (note text, document jsonb)`), change: oneWorker, handler: handler})
	t.Run("trap_80_NUL_and_trap_81_surrogates_park_their_own_message_alone", func(t *testing.T) {
		deliverAround(t, w, message(id, body))
		w.waitParked(id, "permanent failure", state)
		if n := queryOne[int](t, w.db, `select count(*) from texts`); n != 11 {
			t.Errorf("%d texts, want 11", n)
		}
		if got := queryOne[[]byte](t, w.db, `select payload from semel_inbox where id = $1`, storedID(id)); string(got) != body {
			t.Errorf("the parked body is %q, want %q", got, body)
		}
	})
}

func TestABackendThatIsTerminatedInTheMiddleOfABatch(t *testing.T) {
	t.Run("trap_T28_nothing_of_the_batch_is_left_and_all_of_it_runs_again_unblamed", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			first := make(chan struct{}, 1)
			first <- struct{}{}
			w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, services.Postgres(t)), change: oneWorker, handler: func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
				if err := workload.Effect("here")(ctx, exec, m); err != nil || m.Identity.ID != "victim" {
					return err
				}
				select {
				case <-first:
					return exec(ctx, `select pg_terminate_backend(pg_backend_pid())`)
				default:
					return nil
				}
			}})
			deliverAround(t, w, message("victim", `{}`))
			w.waitApplied("victim")
			if w.countEvents(semel.EventNotReady, "57P01") == 0 {
				t.Error("no event reports that an administrator ended the connection")
			}
		})
	})
}

func TestTimeOutsOfTheServer(t *testing.T) {
	t.Run("trap_97_a_statement_that_runs_too_long_is_its_messages_attempt", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			dsn := migrateDatabase(t, services.Postgres(t))
			w := begin(t, settings{driver: driver, dsn: dsn, through: dsn + "&statement_timeout=3000", change: twoAttempts, handler: func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
				if m.Identity.ID == "slow" {
					return exec(ctx, `select pg_sleep(30)`)
				}
				return workload.Effect("here")(ctx, exec, m)
			}})
			deliverAround(t, w, message("slow", `{}`))
			w.waitParked("slow", "attempts exhausted", "57014")
			if runs := w.attemptsOf("slow"); len(runs) != 2 || runs[1] != 2 {
				t.Errorf("the handler ran for slow as attempts %v, want 1 and 2", runs)
			}
		})
	})
	t.Run("trap_97_a_lock_that_is_not_to_be_had_is_nobodys_attempt", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			dsn := newCounterDatabase(t)
			w := begin(t, settings{driver: driver, dsn: dsn, change: oneWorker, handler: func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
				if err := countImpatiently(ctx, exec); err != nil {
					return err
				}
				return workload.Effect("here")(ctx, exec, m)
			}})
			stranger := w.lockCounter()
			ids := makeIDs("m", 10)
			w.deliver(ids...)
			w.untilTold(eventkind.Contended, "55P03")
			w.expectUnacked(ids...)
			if err := stranger.Rollback(); err != nil {
				t.Fatal(err)
			}
			w.waitApplied(ids...)
			w.wantCounter(10)
		})
	})
	t.Run("trap_101_a_handler_that_idles_longer_than_the_server_allows_is_nobodys_attempt", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			first := make(chan struct{}, 1)
			first <- struct{}{}
			var w *world
			w = begin(t, settings{driver: driver, dsn: migrateDatabase(t, services.Postgres(t)), change: oneWorker, handler: func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
				select {
				case <-first:
					if err := exec(ctx, `set local idle_in_transaction_session_timeout = '50ms'`); err != nil {
						return err
					}
					waitUntil(t, "the server ends the idle session", func() bool {
						return queryOne[int](t, w.db, `select count(*) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`) == 0
					})
				default:
				}
				return workload.Effect("here")(ctx, exec, m)
			}})
			ids := makeIDs("m", 10)
			w.deliver(ids...)
			w.waitApplied(ids...)
			if w.countEvents(semel.EventNotReady, "") == 0 {
				t.Error("no event reports that the connection was ended")
			}
		})
	})
}
