package postgres

import (
	"context"
	"database/sql"
	"testing"

	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
)

func TestTheInboxLosesAndDoublesNothing(t *testing.T) {
	db := newDatabase(t)
	sqlsuite.Inbox(t, func(t testing.TB) sqlsuite.Account[*sql.Tx] {
		s := newFixture(t, db, sqlstore.Options{})
		s.execAll(t, []string{"create table in.account (balance bigint not null)", "insert into in.account values (0)"})
		return sqlsuite.Account[*sql.Tx]{
			Store: s.store,
			Add: func(ctx context.Context, tx *sql.Tx, amount int) error {
				_, err := tx.ExecContext(ctx, s.inSchema("update in.account set balance = balance + $1"), amount)
				return err
			},
			Balance: func(t testing.TB) int { return queryOne[int](t, db, s.inSchema("select balance from in.account")) },
		}
	})
}
