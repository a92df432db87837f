package postgresfaults

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// goesOn delivers messages before, during and after a fault of the store, and checks that each message is applied once.
func goesOn(t *testing.T, w *world, breakIt, mend func(), says string) {
	t.Helper()
	before, during, after := makeIDs("before", 20), makeIDs("during", 20), makeIDs("after", 20)
	w.deliver(before...)
	w.waitApplied(before...)
	breakIt()
	w.deliver(during...)
	w.untilTold(semel.EventNotReady, says)
	if ready, _ := w.consumer.Ready(); ready {
		t.Error("the consumer says that it is ready")
	}
	waitUntil(t, "the store was asked again and again", func() bool { return w.countEvents(semel.EventNotReady, "") > 3 })
	w.expectUnacked(during...)
	mend()
	w.waitApplied(during...)
	w.deliver(after...)
	w.waitApplied(after...)
	waitUntil(t, "the consumer says that it is ready", func() bool { // the consumer tries to connect again after a while
		ready, _ := w.consumer.Ready()
		return ready
	})
	if n := queryOne[int](t, w.db, `select count(*) from semel_inbox`); n != 0 {
		t.Errorf("%d messages are set aside", n)
	}
}

func TestAServerThatIsRestarted(t *testing.T) {
	t.Run("trap_130_work_goes_on_when_it_is_back", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			server := services.StartPostgres(t, services.Options{})
			w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, server.DSN())})
			goesOn(t, w, server.Stop, server.Start, "")
		})
	})
	t.Run("law_13_while_it_is_dead_nothing_is_settled_or_charged", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			server := services.StartPostgres(t, services.Options{})
			w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, server.DSN())})
			goesOn(t, w, server.Kill, server.Start, "")
		})
	})
}

// cutOff ends the other sessions of a database, so that new settings take effect.
func cutOff(t testing.TB, db *sql.DB, database string) {
	t.Helper()
	exec(t, db, `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()`, database)
}

// withRole creates a role that is not a superuser, and a database for this role. The results are the administrator's
// connection and the role's connection string.
func withRole(t testing.TB) (admin *sql.DB, dsn string) {
	t.Helper()
	server := services.StartPostgres(t, services.Options{})
	admin = look(t, server.DSN())
	exec(t, admin, `create role app login`)
	exec(t, admin, `create database app owner app`)
	return admin, server.DSN()[:len("postgres://")] + "app" + server.DSN()[len("postgres://postgres"):len(server.DSN())-len("postgres?sslmode=disable")] + "app?sslmode=disable"
}

func TestAServerThatRefuses(t *testing.T) {
	t.Run("trap_129_a_server_that_became_read_only_settles_nothing", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			admin, dsn := withRole(t)
			w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, dsn)})
			goesOn(t, w, func() {
				exec(t, admin, `alter database app set default_transaction_read_only = on`)
				cutOff(t, admin, "app")
			}, func() {
				exec(t, admin, `alter database app set default_transaction_read_only = off`)
				cutOff(t, admin, "app")
			}, "target_session_attrs=read-write")
		})
	})
	t.Run("trap_T32_a_server_without_connections_left_settles_nothing", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			admin, dsn := withRole(t)
			w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, dsn)})
			goesOn(t, w, func() {
				exec(t, admin, `alter role app connection limit 0`)
				cutOff(t, admin, "app")
			}, func() { exec(t, admin, `alter role app connection limit -1`) }, "max_connections")
		})
	})
}

func TestAPasswordThatIsChanged(t *testing.T) {
	t.Run("law_13_settles_nothing_until_it_is_changed_back", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			admin, dsn := withRole(t)
			exec(t, admin, `alter role app password 'the first'`)
			// Only a superuser can write pg_hba.conf. The administrator's role is a superuser.
			exec(t, admin, `copy (values ('host all app 127.0.0.1/32 scram-sha-256'), ('host all all 127.0.0.1/32 trust')) to '`+
				queryOne[string](t, admin, `show hba_file`)+`'`)
			exec(t, admin, `select pg_reload_conf()`)
			waitUntil(t, "the server wants a password", func() bool {
				return queryOne[int](t, admin, `select count(*) from pg_hba_file_rules where auth_method = 'scram-sha-256'`) == 1
			})
			dsn = strings.Replace(dsn, "app@", "app:the%20first@", 1)
			w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, dsn)})
			goesOn(t, w, func() {
				exec(t, admin, `alter role app password 'the second'`)
				cutOff(t, admin, "app")
			}, func() { exec(t, admin, `alter role app password 'the first'`) }, "rejects the password in the connection string")
			t.Run("law_15_nobody_is_told_the_password", func(t *testing.T) {
				if n := w.countEvents(semel.EventNotReady, "the first") + w.countEvents(semel.EventNotReady, "the%20first"); n != 0 {
					t.Errorf("%d errors carry it", n)
				}
			})
		})
	})
}

func TestAnOutage(t *testing.T) {
	t.Run("trap_T33_each_time_the_store_is_asked_is_one_attempt_to_connect", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			server := services.StartPostgres(t, services.Options{})
			proxy := pgproxy.Start(t, server.DSN())
			w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, server.DSN()), through: proxy.DSN()})
			before, during := makeIDs("before", 20), makeIDs("during", 300)
			w.deliver(before...)
			w.waitApplied(before...)
			proxy.Refuse(true)
			proxy.Sever()
			w.deliver(during...)
			// The pauses start at 50 ms and double each time, so seven attempts take seconds.
			waitUntil(t, "it was asked seven times", func() bool { return w.countEvents(semel.EventNotReady, "") >= 7 })
			asked, refused := w.countEvents(semel.EventNotReady, ""), proxy.Counts().Refused
			proxy.Refuse(false)
			// If a connection ends while it is starting, pgx sends a cancel request on another connection.
			// When the database went down, each worker may have had a batch in progress, and one worker
			// may have been connecting.
			if refused > 4*asked {
				t.Errorf("the store was called down %d times and %d connections were tried", asked, refused)
			}
			w.waitApplied(during...)
		})
	})
}
