package postgresfaults

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
)

// onSmallDisk moves a table to a disk that the test can fill and empty. Each new row of the table needs a
// page of its own.
func onSmallDisk(t *testing.T, server *services.Server, db *sql.DB, table string) (fill, empty func()) {
	t.Helper()
	if server.Small() == "" {
		return saidToBeFull(t, db, table)
	}
	for _, statement := range []string{
		`create tablespace small location '` + server.Small() + `'`,
		`alter table ` + table + ` add filler text not null default repeat('x', 7000)`,
		`alter table ` + table + ` alter filler set storage plain`,
		`alter table ` + table + ` set tablespace small`,
	} {
		exec(t, db, statement)
	}
	fill = func() {
		exec(t, db, `create table ballast (filler text) tablespace small`)
		exec(t, db, `alter table ballast alter filler set storage plain`)
		// A table keeps the disk space that a failed insert used.
		_, err := db.Exec(`insert into ballast select repeat('x', 7000) from generate_series(1, 1000)`)
		var server *pgconn.PgError
		if !errors.As(err, &server) || server.Code != "53100" {
			t.Fatalf("filling the disk says %v", err)
		}
	}
	return fill, func() { exec(t, db, `drop table ballast`) }
}

// saidToBeFull is for machines on which no small disk can be mounted: a trigger raises the error of a full disk.
func saidToBeFull(t *testing.T, db *sql.DB, table string) (fill, empty func()) {
	t.Helper()
	disk := services.NewReportedDisk(table)
	exec(t, db, disk.Setup)
	return func() { exec(t, db, disk.Fill) }, func() { exec(t, db, disk.Empty) }
}

// outOfDisk returns a running consumer and a database in which a test can fill the disk of one table.
func outOfDisk(t *testing.T, driver workload.Driver, table string, handler workload.Handler) (w *world, fill, empty func()) {
	t.Helper()
	server := services.StartPostgres(t, services.Options{Small: true, Settings: []string{"autovacuum = off"}})
	w = begin(t, settings{driver: driver, dsn: migrateDatabase(t, server.DSN()), change: oneWorker, handler: handler})
	fill, empty = onSmallDisk(t, server, w.db, table)
	return w, fill, empty
}

func TestAServerOutOfDisk(t *testing.T) {
	for table, says := range map[string]string{"effects": "53100", "semel_markers": "free space on the server's disk"} {
		t.Run(table, func(t *testing.T) {
			t.Run("trap_140_settles_nothing_and_charges_nobody_until_there_is_space", func(t *testing.T) {
				eachDriver(t, func(t *testing.T, driver workload.Driver) {
					w, fill, empty := outOfDisk(t, driver, table, nil)
					goesOn(t, w, fill, empty, says)
				})
			})
		})
	}
	t.Run("trap_140_a_message_that_cannot_be_set_aside_waits_until_there_is_space", func(t *testing.T) {
		eachDriver(t, func(t *testing.T, driver workload.Driver) {
			w, fill, empty := outOfDisk(t, driver, "semel_inbox", func(ctx context.Context, exec workload.Exec, m *semel.Message) error {
				if m.Identity.ID == "bad" {
					return semel.Park("look")
				}
				return workload.Effect("here")(ctx, exec, m)
			})
			fill()
			w.deliver("bad")
			w.untilTold(semel.EventNotReady, "53100")
			w.expectUnacked("bad")
			empty()
			w.waitParked("bad", "look", "")
			if runs := w.attemptsOf("bad"); len(runs) != 1 {
				t.Errorf("the handler ran for bad as attempts %v, want once", runs)
			}
			w.deliver("afterwards")
			w.waitApplied("afterwards")
		})
	})
}
