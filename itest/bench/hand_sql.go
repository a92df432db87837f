package bench

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/semel-go/semel"
)

// handSQL applies a batch through database/sql, which cannot send statements together.
func handSQL(ctx context.Context, db *sql.DB, effect string, batch []*semel.Message) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	wrote, err := handMarkSQL(ctx, tx, batch)
	if err != nil {
		return err
	}
	for _, m := range batch {
		id := string(handID(m))
		if !wrote[id] {
			continue
		}
		delete(wrote, id)
		var p payment
		if err := json.Unmarshal(m.Body, &p); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, effect, p.Account, p.Amount); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func handMarkSQL(ctx context.Context, tx *sql.Tx, batch []*semel.Message) (map[string]bool, error) {
	ids, sums := handMarks(batch)
	rows, err := tx.QueryContext(ctx, handMark, ids, sums)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	wrote := make(map[string]bool, len(batch))
	for rows.Next() {
		var id []byte
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		wrote[string(id)] = true
	}
	return wrote, rows.Err()
}
