//go:build unix

package matrix

import (
	"database/sql"
	"slices"
	"testing"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
)

func exec(db *sql.DB, statements string) error {
	_, err := db.Exec(statements)
	return err
}

// prepare creates the tables in a database of PostgreSQL.
func prepare(t *testing.T, dsn string) {
	t.Helper()
	db := must.Get(sql.Open("pgx", dsn))(t)
	defer db.Close()
	migrate(t, must.Get(sqlstore.Postgres(db, sqlstore.Options{}))(t).Migrate)
	must.OK(t, exec(db, tables))
}

func TestTheCrashMatrixWithServersThatRestart(t *testing.T) {
	for _, b := range []base{inPostgres, inPgx, inRedis} {
		t.Run("law_1_law_2_law_11_law_12_no_message_is_lost_doubled_or_stuck/"+string(b), func(t *testing.T) {
			t.Parallel()
			var address string
			var restart func()
			if b == inRedis {
				s := services.StartRedis(t, "appendonly yes", "appendfsync always")
				address, restart = s.Address(), func() { s.Kill(); s.Start() }
			} else {
				s := services.StartPostgres(t, services.Options{Settings: []string{"fsync = off"}})
				address, restart = s.DSN(), func() { s.Kill(); s.Start() }
				prepare(t, address)
			}
			for _, c := range chosen(b) {
				t.Run(c.String(), func(t *testing.T) {
					run(t, world{cell: c, server: address, fault: &fault{restart: restart}})
				})
			}
		})
	}
}

// chosen returns the cells in which the server of a store restarts. In a short run, chosen returns only the first of
// these cells.
func chosen(b base) []cell {
	all := slices.DeleteFunc(cells(), func(c cell) bool { return c.Base != b || c.Kind != restarts || c.impossible() != possible })
	if sqlsuite.OneWay() {
		return all[:1]
	}
	return all
}
