package orm

import (
	"context"
	"database/sql"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
	"github.com/semel-go/semel"
	"github.com/uptrace/bun"
	"gorm.io/gorm"
)

// Account is a row of the table accounts.
type Account struct {
	ID      string `bun:",pk" db:"id"`
	Balance int64  `db:"balance"`
}

// BySQLX applies a payment with sqlx.
func BySQLX(ctx context.Context, tx *sql.Tx, p Payment) error {
	sqlx.BindDriver("", sqlx.DOLLAR) // this Tx has no driver name, so sqlx would write placeholders as ?
	x := sqlx.Tx{Tx: tx, Mapper: reflectx.NewMapperFunc("db", strings.ToLower)}
	_, err := x.NamedExecContext(ctx, `update accounts set balance = balance + :amount where id = :account`, p)
	return err
}

// ByGORM applies a payment with GORM. Open db once, when the program starts.
func ByGORM(ctx context.Context, db *gorm.DB, tx *sql.Tx, p Payment) error {
	g := db.Session(&gorm.Session{Context: ctx, NewDB: true, SkipDefaultTransaction: true})
	g.Statement.ConnPool = tx
	done := g.Model(&Account{}).Where("id = ?", p.Account).Update("balance", gorm.Expr("balance + ?", p.Amount))
	if done.Error == nil && done.RowsAffected != 1 {
		return semel.PreconditionFailed("no such account")
	}
	return done.Error
}

// ByBun applies a payment with bun. Open db once, when the program starts.
func ByBun(ctx context.Context, db *bun.DB, tx *sql.Tx, p Payment) error {
	return semel.OneRow(db.NewUpdate().Conn(tx).Model((*Account)(nil)).
		Set("balance = balance + ?", p.Amount).Where("id = ?", p.Account).Exec(ctx))
}

// ByEnt applies a payment with ent's SQL builder. A client that ent generates takes the same driver:
// ent.NewClient(ent.Driver(driver)).
func ByEnt(ctx context.Context, tx *sql.Tx, p Payment) error {
	driver := entsql.NewDriver(dialect.Postgres, entsql.Conn{ExecQuerier: tx})
	query, args := entsql.Dialect(dialect.Postgres).Update("accounts").
		Add("balance", p.Amount).Where(entsql.EQ("id", p.Account)).Query()
	var done sql.Result
	err := driver.Exec(ctx, query, args, &done)
	return semel.OneRow(done, err)
}
