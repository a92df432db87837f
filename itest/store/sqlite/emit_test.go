package sqlite

import (
	"database/sql"
	"testing"

	"github.com/semel-go/semel/itest/store/sqlsuite"
)

func TestIntentsThatAreSentAgain(t *testing.T) {
	t.Run("C12_law_1_by_two_processes_at_once", func(t *testing.T) {
		db := openFile(t, newFile(t), pragmas)
		store := storeOn(t, db)
		sqlsuite.Emission[*sql.Tx]{Store: store, Sender: store, ID: "1", Pass: func(t testing.TB) {
			exec(t, db, "update semel_inbox set processed_at = processed_at - 61000")
		}}.Sends(t)
	})
}
