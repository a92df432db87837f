package sqlite

import (
	"database/sql"
	"testing"

	"github.com/semel-go/semel/itest/store/sqlsuite"
)

func TestASwallowedInsertIsNoticedInAFile(t *testing.T) {
	db := openFile(t, newFile(t), pragmas+foreignKeys)
	sqlsuite.Swallowed(t, sqlsuite.Swallowing[*sql.Tx]{Store: storeOn(t, db), Swallow: func(t testing.TB, table string) func() {
		exec(t, db, "create trigger eats before insert on semel_"+table+" begin select raise(ignore); end")
		return func() { exec(t, db, "drop trigger eats") }
	}})
}
