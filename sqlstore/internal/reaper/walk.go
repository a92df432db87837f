package reaper

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// A call that may look at markersPerBlock times as many markers reads so many blocks of a
// table, and no fewer than fewestBlocks: a block has some sixty to two hundred of them, most
// are not due, and reading them costs little.
const (
	markersPerBlock = 32
	fewestBlocks    = 16
)

// walk goes on with the walk of a pass through the table, round from where the last one
// came to, and removes what is due in the next blocks.
func walk(ctx context.Context, db *database.DB, tx *sql.Tx, o store.Reaping, done *store.Reaped) error {
	at := o.After
	if at == (store.ReapMark{}) {
		rest := o.Rest.Microseconds()
		if err := tx.QueryRowContext(ctx, db.Postgres.Place, []byte(o.Consumer), rest).Scan(&at.Blocks, &at.Block, &at.At); err != nil {
			return err
		}
		at.Left = at.Blocks
	}
	if at.Left > 0 {
		// Before anything is removed: from then on a copy of it waits for the commit.
		if err := walked(ctx, db, tx, o, &at); err != nil {
			return err
		}
		if err := walkOn(ctx, db, tx, o, &at, done); err != nil {
			return err
		}
	}
	if at.Left > 0 {
		done.Next = at
		return nil
	}
	done.Next = store.ReapMark{Done: true}
	if at.Left < 0 { // it need not begin
		return nil
	}
	return walked(ctx, db, tx, o, &at)
}

// walked notes where a walk is and, where it has come to its end, up to where it removed.
func walked(ctx context.Context, db *database.DB, tx *sql.Tx, o store.Reaping, at *store.ReapMark) error {
	if at.ID != "" { // within blocks that are noted
		return nil
	}
	to := sql.NullInt64{Int64: at.At, Valid: at.Left == 0}
	_, err := tx.ExecContext(ctx, db.Postgres.Walked, []byte(o.Consumer), at.Block, to)
	return err
}

// walkOn removes what is due in the next blocks, and has the place be behind them or, if
// they hold more than one call may look at, behind the last marker that it looked at.
func walkOn(ctx context.Context, db *database.DB, tx *sql.Tx, o store.Reaping, at *store.ReapMark, done *store.Reaped) error {
	past := at.Block + min(max(int64(o.Most/markersPerBlock), fewestBlocks), at.Left, at.Blocks-at.Block)
	args := []any{[]byte(o.Consumer), fmt.Sprintf("(%d,0)", at.Block), fmt.Sprintf("(%d,0)", past), o.Most}
	if at.ID != "" {
		args[1] = at.ID
	}
	rows, err := tx.ExecContext(ctx, db.Postgres.ReapRows, args...)
	if err != nil {
		return err
	}
	if done.Rows, err = rows.RowsAffected(); err != nil {
		return err
	}
	var looked int64
	var last sql.NullString
	if err := tx.QueryRowContext(ctx, db.Postgres.Reap, args...).Scan(&looked, &done.Markers, &last); err != nil {
		return err
	}
	done.Kept = looked - done.Markers
	if at.ID = last.String; at.ID == "" {
		at.Left -= past - at.Block
		if at.Block = past; past >= at.Blocks {
			at.Block = 0
		}
	}
	return nil
}
