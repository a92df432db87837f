package sqlite

import (
	"context"
	"database/sql"
	"testing"

	"github.com/semel-go/semel/itest/store/sqlsuite"
)

func TestTheInboxLosesAndDoublesNothing(t *testing.T) {
	sqlsuite.Inbox(t, func(t testing.TB) sqlsuite.Account[*sql.Tx] {
		db := openFile(t, newFile(t), pragmas)
		exec(t, db, "create table account (balance integer not null); insert into account values (0)")
		return sqlsuite.Account[*sql.Tx]{
			Store: storeOn(t, db), OneWriter: true,
			Add: func(ctx context.Context, tx *sql.Tx, amount int) error {
				_, err := tx.ExecContext(ctx, "update account set balance = balance + ?", amount)
				return err
			},
			Balance: func(t testing.TB) (n int) {
				if err := db.QueryRow("select balance from account").Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			},
		}
	})
}
