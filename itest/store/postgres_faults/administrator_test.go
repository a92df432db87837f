package postgresfaults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// inPublic writes the effect to the schema public, with any search_path. The handler rejects the message "bad".
func inPublic(ctx context.Context, exec workload.Exec, m *semel.Message) error {
	if m.Identity.ID == "bad" {
		return semel.Permanent(errors.New("no such order"))
	}
	return exec(ctx, `insert into public.effects (id, worker) values ($1, 'here')`, m.Identity.ID)
}

// startConsumer starts a consumer with a new database and delivers some messages. The result before contains the
// ids of the delivered messages, which are applied.
func startConsumer(t *testing.T, driver workload.Driver) (w *world, before []string) {
	t.Helper()
	w, before = begin(t, settings{driver: driver, dsn: migrateDatabase(t, services.Postgres(t)), handler: inPublic}), makeIDs("before", 20)
	w.deliver(before...)
	w.waitApplied(before...)
	return w, before
}

func TestTablesThatAreWrittenAnew(t *testing.T) {
	for name, statement := range map[string]string{
		"VACUUM_FULL": "vacuum full semel_markers, semel_guard, semel_guard_end, semel_scopes",
		"CLUSTER":     "cluster semel_markers using semel_markers_pkey",
	} {
		t.Run("trap_T80_under_load_charge_nobody/"+name, func(t *testing.T) {
			eachDriver(t, func(t *testing.T, driver workload.Driver) {
				w, before := startConsumer(t, driver)
				for round := range 3 {
					ids := makeIDs(fmt.Sprint("m", round, "-"), 100)
					w.deliver(ids...)
					exec(t, w.db, statement)
					w.waitApplied(ids...)
				}
				w.deliver(before...)
				waitUntil(t, "the copies are duplicates", func() bool { return w.consumer.Counts().Duplicates == int64(len(before)) })
			})
		})
	}
}

func TestTablesThatAreChangedUnderAConsumer(t *testing.T) {
	for name, c := range map[string]struct{ done, says, mend string }{
		"markers_renamed":  {"alter table semel_markers rename to away", "semel_markers is missing", "alter table away rename to semel_markers"},
		"guard_renamed":    {"alter table semel_guard rename to away", "semel_guard is missing", "alter table away rename to semel_guard"},
		"a_column_renamed": {"alter table semel_markers rename column outcome to away", `column "outcome"`, "alter table semel_markers rename column away to outcome"},
		"another_schema":   {"create schema away; alter table semel_markers set schema away", "semel_markers is missing", "alter table away.semel_markers set schema public"},
	} {
		t.Run("trap_T112_stop_it_with_one_advice_until_they_are_mended/"+name, func(t *testing.T) {
			eachDriver(t, func(t *testing.T, driver workload.Driver) {
				w, before := startConsumer(t, driver)
				exec(t, w.db, c.done)
				ids := makeIDs("m", 20)
				w.deliver(ids...)
				w.untilTold(semel.EventNotReady, c.says)
				if w.countEvents(semel.EventNotReady, "is missing: semel: the schema does not fit") > 0 && w.countEvents(semel.EventNotReady, "run semel migrate up") > 0 {
					t.Error("what the check of the tables says is followed by another advice")
				}
				w.expectUnacked(ids...)
				exec(t, w.db, c.mend)
				w.waitApplied(ids...)
				w.deliver(before...)
				waitUntil(t, "the copies are duplicates", func() bool { return w.consumer.Counts().Duplicates == int64(len(before)) })
			})
		})
	}
	t.Run("trap_T112_an_inbox_that_is_not_there_keeps_its_message_and_why_it_failed", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			w, _ := startConsumer(t, driver)
			exec(t, w.db, "alter table semel_inbox rename to away")
			w.deliver("bad")
			w.untilTold(eventkind.Retry, "semel migrate status")
			w.expectUnacked("bad")
			exec(t, w.db, "alter table away rename to semel_inbox")
			w.waitParked("bad", "permanent failure", "no such order")
		})
	})
	t.Run("trap_T112_another_search_path_changes_nothing", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			w, before := startConsumer(t, driver)
			exec(t, w.db, "create schema away; create table away.semel_markers (like semel_markers including all)")
			exec(t, w.db, "alter role postgres in database "+queryOne[string](t, w.db, "select current_database()")+" set search_path = away")
			exec(t, w.db, "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
			ids := makeIDs("m", 20)
			w.deliver(append(ids, before...)...)
			w.waitSettled(ids...)
			waitUntil(t, "the copies are duplicates", func() bool { return w.consumer.Counts().Duplicates == int64(len(before)) })
			if n := queryOne[int](t, w.db, "select count(*) from away.semel_markers"); n != 0 {
				t.Errorf("%d markers are written elsewhere", n)
			}
			if n := queryOne[int](t, w.db, "select count(*) from public.effects"); n != len(before)+len(ids) {
				t.Errorf("%d effects, want %d", n, len(before)+len(ids))
			}
		})
	})
}

func TestAStandbyThatIsStopped(t *testing.T) {
	t.Run("trap_T29_leaves_commits_unknown_until_it_is_back_and_loses_and_doubles_nothing", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			server := services.StartPostgres(t, services.Options{Standby: true})
			w := begin(t, settings{driver: driver, dsn: migrateDatabase(t, server.DSN()), change: func(c *consumer.Config) { c.CommitTimeout = 500 * time.Millisecond }})
			w.deliver("before")
			w.waitApplied("before")
			server.Standby().Stop()
			ids := makeIDs("m", 20)
			w.deliver(ids...)
			w.untilTold(eventkind.Unknown, "")
			server.Standby().Start()
			server.WaitSynchronous()
			w.waitApplied(ids...)
		})
	})
}
