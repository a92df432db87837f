package operators

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/sqlstore/internal/daily"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// causedRow is a row that a certain message caused.
type causedRow struct {
	calls.Sent
	number, revision int64
}

// Emit implements admin.Emitter.
func (s *Store) Emit(ctx context.Context, o admin.EmitOptions) (all admin.Emitted, err error) {
	db := s.db
	if db.Days != nil { // the database db contains the markers of the causing consumer; the caused rows belong to other consumers
		db = db.Days.DB
	}
	if len(o.Causes) == 0 {
		return all, db.Indexed(ctx, (*database.DB).OfCauses)
	}
	rows, err := causedBy(ctx, db, o.Causes)
	for i := 0; err == nil && i < len(rows); i++ {
		one := calls.EmitAgain(&o, &rows[i].Sent)
		if one.Again > 0 {
			one, err = emit(ctx, db, &rows[i])
		}
		all = all.Plus(one)
	}
	return all, db.Answer("emit", err)
}

// causedBy returns the rows that the given messages caused, ordered by number.
func causedBy(ctx context.Context, db *database.DB, causes [][]byte) (rows []causedRow, err error) {
	each := make([]int, len(causes))
	for i := range each {
		each[i] = i
	}
	for chunk := range db.Dialect.Chunks(each) {
		if len(chunk) == 0 {
			continue
		}
		flat := make([]any, len(chunk))
		for n, i := range chunk {
			flat[n] = causes[i]
		}
		some, err := readCaused(ctx, db, flat)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

func readCaused(ctx context.Context, s *database.DB, causes []any) ([]causedRow, error) {
	text, args := s.Bulk(s.SQL.Caused, 1, causes)
	return database.List(ctx, s.Pool, text, func(rows *sql.Rows) (causedRow, error) {
		var c causedRow
		var sender []byte
		var since, ended int64
		err := rows.Scan(&c.number, &c.revision, &sender, &c.State, &c.Started, &c.Finished, &since, &ended, &c.BodyRemoved)
		c.Sender, c.Since, c.Ended = string(sender), calls.Ago(time.Duration(since)*time.Millisecond), time.Duration(ended)*time.Millisecond
		return c, err
	}, args...)
}

// emit schedules a row to run again, if the row's marker has the outcome Applied and the row was not changed after it
// was read.
func emit(ctx context.Context, db *database.DB, c *causedRow) (admin.Emitted, error) {
	db, err := daily.OfRow(ctx, db, c.number)
	if err != nil {
		return admin.Emitted{}, err
	}
	left := false
	err = db.Write(ctx, func(tx *sql.Tx) error {
		r, err := Look(ctx, db, tx, c.number, c.revision)
		if err != nil {
			return err
		}
		if left = r.state != store.StateCompleted || r.Outcome != store.Applied || len(r.conflict) > 0; left {
			return nil
		}
		if err := Set(ctx, tx, r, db.SQL.EmitRow); err != nil {
			return err
		}
		return database.ExecOne(ctx, tx, fmt.Errorf("row %d cannot be sent again, because its marker was not written: a trigger or a rule prevents it; find it with Check", c.number), db.SQL.MarkersWait, ActedRows(r))
	})
	switch {
	case errors.Is(err, semel.ErrChanged), errors.Is(err, semel.ErrState), err == nil && left:
		return admin.Emitted{Left: 1}, nil // another process has sent the intent again, or an operator has changed the row
	case err != nil:
		return admin.Emitted{}, err
	}
	return admin.Emitted{Again: 1}, nil
}
