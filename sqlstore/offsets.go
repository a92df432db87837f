package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/source"
)

// Offsets implements source.OffsetStore. They stand in the table of positions.
func (s *Store) Offsets(ctx context.Context, consumer string, lanes []string) (all []source.LaneOffset, err error) {
	all = unknownOffsets(lanes)
	if len(all) == 0 {
		return all, nil
	}
	if s.postgres != nil {
		err = scanOffsets(all, func() (*sql.Rows, error) {
			return s.db.QueryContext(ctx, s.postgres.Offsets, sqlform.Plain(consumer), array(plain(lanes)))
		})
	} else {
		err = s.sqliteOffsets(ctx, s.db, consumer, all)
	}
	if err != nil {
		return nil, s.blameless("offsets of lanes", err)
	}
	return all, nil
}

// AdvanceOffsets implements source.OffsetStore.
func (s *Store) AdvanceOffsets(ctx context.Context, consumer string, to []source.OffsetAdvance) (before []source.LaneOffset, err error) {
	lanes := make([]string, len(to))
	for i := range to {
		lanes[i] = to[i].Lane
	}
	if before = unknownOffsets(lanes); len(before) == 0 {
		return before, nil
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		if s.postgres != nil {
			return s.postgresAdvance(ctx, tx, consumer, to, before)
		}
		return s.sqliteAdvance(ctx, tx, consumer, to, before)
	})
	if err != nil {
		return nil, s.blameless("offsets of lanes", err)
	}
	return before, nil
}

func (s *Store) postgresAdvance(ctx context.Context, tx *sql.Tx, consumer string, to []source.OffsetAdvance, before []source.LaneOffset) error {
	names, offsets, least := make([]string, len(to)), make([]int64, len(to)), make([]int64, len(to))
	for i, a := range to {
		names[i], offsets[i], least[i] = sqlform.Plain(a.Lane), a.Offset, a.Least
	}
	return scanOffsets(before, func() (*sql.Rows, error) {
		return tx.QueryContext(ctx, s.postgres.AdvanceOffsets, append([]any{sqlform.Plain(consumer)}, columns([]any{names, offsets, least})...)...)
	})
}

// scanOffsets notes offsets by the number of their lane, from 1.
func scanOffsets(all []source.LaneOffset, query func() (*sql.Rows, error)) error {
	rows, err := query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var k int
		var at int64
		if err := rows.Scan(&k, &at); err != nil {
			return err
		}
		all[k-1].Offset = at
	}
	return rows.Err()
}

func (s *Store) sqliteOffsets(ctx context.Context, from queries, consumer string, all []source.LaneOffset) error {
	for i := range all {
		var length int64
		var check []byte
		err := from.QueryRowContext(ctx, s.sql.Position, sqlform.Plain(consumer), sqlform.Plain(all[i].Lane)).Scan(&all[i].Offset, &length, &check)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	return nil
}

func (s *Store) sqliteAdvance(ctx context.Context, tx *sql.Tx, consumer string, to []source.OffsetAdvance, before []source.LaneOffset) error {
	if err := s.sqliteOffsets(ctx, tx, consumer, before); err != nil {
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
		if _, err := tx.ExecContext(ctx, s.sql.SavePosition, sqlform.Plain(consumer), sqlform.Plain(a.Lane), a.Offset, 0, []byte{}); err != nil {
			return err
		}
	}
	return nil
}

func unknownOffsets(lanes []string) []source.LaneOffset {
	all := make([]source.LaneOffset, len(lanes))
	for i, name := range lanes {
		all[i] = source.LaneOffset{Lane: name, Offset: source.NoOffset}
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
