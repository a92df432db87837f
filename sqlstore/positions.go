package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore/internal/database"
)

// Offsets implements laneoffset.Store. The table of positions contains the offsets.
func (s *Store) Offsets(ctx context.Context, consumer string, lanes []string) (all []laneoffset.LaneOffset, err error) {
	all = unknownOffsets(lanes)
	if len(all) == 0 {
		return all, nil
	}
	if s.db.Postgres != nil {
		err = readOffsets(ctx, s.db.Pool, all, s.db.Postgres.Offsets, sqlform.Plain(consumer), database.Array(plain(lanes)))
	} else {
		err = sqliteOffsets(ctx, s.db, s.db.Pool, consumer, all)
	}
	if err != nil {
		return nil, s.db.Blameless("offsets of lanes", err)
	}
	return all, nil
}

// AdvanceOffsets implements laneoffset.Store.
func (s *Store) AdvanceOffsets(ctx context.Context, consumer string, to []laneoffset.Advance) (before []laneoffset.LaneOffset, err error) {
	lanes := make([]string, len(to))
	for i := range to {
		lanes[i] = to[i].Lane
	}
	if before = unknownOffsets(lanes); len(before) == 0 {
		return before, nil
	}
	err = s.db.Write(ctx, func(tx *sql.Tx) error {
		if s.db.Postgres != nil {
			return postgresAdvance(ctx, s.db, tx, consumer, to, before)
		}
		return sqliteAdvance(ctx, s.db, tx, consumer, to, before)
	})
	if err != nil {
		return nil, s.db.Blameless("offsets of lanes", err)
	}
	return before, nil
}

func postgresAdvance(ctx context.Context, db *database.DB, tx *sql.Tx, consumer string, to []laneoffset.Advance, before []laneoffset.LaneOffset) error {
	names, offsets, least := make([]string, len(to)), make([]int64, len(to)), make([]int64, len(to))
	for i, a := range to {
		names[i], offsets[i], least[i] = sqlform.Plain(a.Lane), a.Offset, a.Least
	}
	return readOffsets(ctx, tx, before, db.Postgres.AdvanceOffsets, append([]any{sqlform.Plain(consumer)}, database.Columns([]any{names, offsets, least})...)...)
}

// readOffsets sets the offsets of lanes from the rows of a query. The query numbers the lanes from 1.
func readOffsets(ctx context.Context, from database.Queryer, all []laneoffset.LaneOffset, query string, args ...any) error {
	return database.EachRow(ctx, from, query, func(rows *sql.Rows) error {
		var k int
		var at int64
		if err := rows.Scan(&k, &at); err != nil {
			return err
		}
		all[k-1].Offset = at
		return nil
	}, args...)
}

func sqliteOffsets(ctx context.Context, db *database.DB, from database.Queryer, consumer string, all []laneoffset.LaneOffset) error {
	for i := range all {
		var length int64
		var check []byte
		err := from.QueryRowContext(ctx, db.SQL.Position, sqlform.Plain(consumer), sqlform.Plain(all[i].Lane)).Scan(&all[i].Offset, &length, &check)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	return nil
}

func sqliteAdvance(ctx context.Context, db *database.DB, tx *sql.Tx, consumer string, to []laneoffset.Advance, before []laneoffset.LaneOffset) error {
	if err := sqliteOffsets(ctx, db, tx, consumer, before); err != nil {
		return err
	}
	for i, a := range to {
		if a.Lacks(before[i]) {
			return nil
		}
	}
	for i, a := range to {
		if a.Offset <= before[i].Offset {
			continue
		}
		if _, err := tx.ExecContext(ctx, db.SQL.SavePosition, sqlform.Plain(consumer), sqlform.Plain(a.Lane), a.Offset, 0, []byte{}); err != nil {
			return err
		}
	}
	return nil
}

func unknownOffsets(lanes []string) []laneoffset.LaneOffset {
	all := make([]laneoffset.LaneOffset, len(lanes))
	for i, name := range lanes {
		all[i] = laneoffset.LaneOffset{Lane: name, Offset: laneoffset.None}
	}
	return all
}

func plain(all []string) []string {
	texts := make([]string, len(all))
	for i := range all {
		texts[i] = sqlform.Plain(all[i])
	}
	return texts
}

// LoadPosition implements source.PositionStore.
func (s *Store) LoadPosition(ctx context.Context, consumer, lane string) (source.Position, bool, error) {
	return loadPosition(ctx, s.db, consumer, lane)
}

func loadPosition(ctx context.Context, db *database.DB, consumer, lane string) (source.Position, bool, error) {
	var p source.Position
	err := db.Pool.QueryRowContext(ctx, db.SQL.Position, sqlform.Plain(consumer), sqlform.Plain(lane)).Scan(&p.Offset, &p.Length, &p.Check)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return source.Position{}, false, nil
	case err != nil:
		return source.Position{}, false, db.Blameless("position of "+lane, err)
	}
	return p, true, nil
}

// SavePosition implements source.PositionStore.
func (s *Store) SavePosition(ctx context.Context, consumer, lane string, p source.Position) error {
	return writePosition(ctx, s.db, s.db.SQL.SavePosition, consumer, lane, p)
}

// KeepPosition implements source.PositionStore.
func (s *Store) KeepPosition(ctx context.Context, consumer, lane string, p source.Position) (source.Position, error) {
	if err := writePosition(ctx, s.db, s.db.SQL.KeepPosition, consumer, lane, p); err != nil {
		return source.Position{}, err
	}
	kept, there, err := s.LoadPosition(ctx, consumer, lane)
	if err == nil && !there {
		err = s.db.Blameless("position of "+lane, errors.New("another transaction deleted it at the same time; try again"))
	}
	return kept, err
}

func writePosition(ctx context.Context, db *database.DB, statement, consumer, lane string, p source.Position) error {
	err := db.Exec(ctx, statement, sqlform.Plain(consumer), sqlform.Plain(lane), p.Offset, p.Length, database.NotNil(p.Check))
	return db.Answer(fmt.Sprintf("saving the position of %s", lane), err)
}
