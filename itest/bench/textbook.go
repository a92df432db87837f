package bench

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
)

const textbookMark = "insert into processed (consumer, id) values ('bench', $1) on conflict do nothing"

// textbook applies one message in a transaction of its own, like the loops in textbooks.
func textbook(ctx context.Context, pool *pgxpool.Pool, effect string, m *semel.Message) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, textbookMark, string(m.Headers[0].Value))
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		var p payment
		if err := json.Unmarshal(m.Body, &p); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, effect, p.Account, p.Amount)
		return err
	})
}

// textbookSQL is like textbook, through database/sql.
func textbookSQL(ctx context.Context, db *sql.DB, effect string, m *semel.Message) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	result, err := tx.ExecContext(ctx, textbookMark, string(m.Headers[0].Value))
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return err
	}
	var p payment
	if err := json.Unmarshal(m.Body, &p); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, effect, p.Account, p.Amount); err != nil {
		return err
	}
	return tx.Commit()
}
