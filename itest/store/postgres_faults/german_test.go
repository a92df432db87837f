package postgresfaults

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// startGermanServer starts a server whose error messages are in German.
func startGermanServer(t *testing.T) *services.Server {
	t.Helper()
	// The machine needs no German locale: the setting lc_messages only enables translation, and the environment
	// variable LANGUAGE selects the language.
	server := services.StartPostgres(t, services.Options{Settings: []string{"lc_messages = 'C.UTF-8'"}, Environment: []string{"LANGUAGE=de"}})
	if _, err := look(t, server.DSN()).Exec(`select 1 / 0`); err == nil || !strings.Contains(err.Error(), "Division durch Null") {
		t.Fatalf("the server says %v, and was to say it in German: PostgreSQL's translations (postgres-*.mo below /usr/share/locale/de, of Debian's package postgresql) or the locale C.UTF-8 are missing", err)
	}
	return server
}

// raiseByID is a handler that causes the error named by the message's id.
func raiseByID(ctx context.Context, exec workload.Exec, m *semel.Message) error {
	if err := workload.Effect("here")(ctx, exec, m); err != nil {
		return err
	}
	switch m.Identity.ID {
	case "twice":
		err := exec(ctx, `insert into things values ('there')`)
		if sqlstore.Violates(err, "things_name") {
			return semel.Duplicate(err)
		}
		return fmt.Errorf("not told as a violation: %w", err)
	case "zero":
		return exec(ctx, `select 1 / 0`)
	case "nowhere":
		return exec(ctx, `insert into nowhere values (1)`)
	case "raised":
		return exec(ctx, `insert into guarded values (1)`)
	case "late":
		return exec(ctx, `insert into late values ('nobody')`)
	case "slow":
		if err := exec(ctx, `set local statement_timeout = 100`); err != nil {
			return err
		}
		return exec(ctx, `select pg_sleep(30)`)
	}
	return nil
}

func TestAServerThatSpeaksGerman(t *testing.T) {
	t.Run("trap_T10_is_understood_by_its_codes", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			server := startGermanServer(t)
			dsn := migrateDatabase(t, server.DSN(),
				`create table things (name text constraint things_name unique)`, `insert into things values ('there')`,
				`create table guarded (id int)`,
				`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'Nein, das gibt es schon'; end $$`,
				`create trigger refuse before insert on guarded for each row execute function refuse()`,
				`create table late (name text references things (name) deferrable initially deferred)`)
			w := begin(t, settings{driver: driver, dsn: dsn, handler: raiseByID, change: func(c *consumer.Config) {
				oneWorker(c)
				c.Retry.MaxAttempts = 2
			}})
			deliverAround(t, w, message("twice", `{}`), message("zero", `{}`), message("nowhere", `{}`), message("raised", `{}`), message("late", `{}`), message("slow", `{}`))
			if effects, marker := w.countEffects("twice"), w.marker("twice"); effects != 0 || marker != int(store.Applied) {
				t.Errorf("twice has %d effects and the marker %d, want none, applied", effects, marker)
			}
			w.waitParked("zero", "permanent failure", "Division durch Null")
			w.waitParked("nowhere", "permanent failure", "existiert nicht")
			w.waitParked("raised", "permanent failure", "Nein, das gibt es schon")
			w.waitParked("late", "permanent failure", "late_name_fkey")
			w.waitParked("slow", "attempts exhausted", "57014")
			germanContention(t, w)
		})
	})
	t.Run("law_13_is_waited_for_when_it_restarts", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			server := startGermanServer(t)
			w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, server.DSN())})
			goesOn(t, w, server.Stop, server.Start, "")
		})
	})
}

// germanContention checks that a lock wait timeout on a row is classified as contention although the message
// is in German.
func germanContention(t *testing.T, w *world) {
	t.Helper()
	exec(t, w.db, `alter table effects add constraint effects_id unique (id)`)
	stranger, err := w.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.Exec(`insert into effects values ('wanted', 'stranger')`); err != nil {
		t.Fatal(err)
	}
	w.deliver("wanted")
	w.untilTold(eventkind.Contended, "55P03")
	w.expectUnacked("wanted")
	if err := stranger.Rollback(); err != nil {
		t.Fatal(err)
	}
	w.waitApplied("wanted")
}
