package sqlstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
)

// indexed reports the indexes that the reaper needs and that do not stand.
func (s *Store) indexed(ctx context.Context) error {
	if s.postgres == nil {
		return nil
	}
	missing, _, err := s.unindexed(ctx)
	if err != nil {
		return s.blameless("check", err)
	}
	if len(missing) > 0 {
		return fmt.Errorf("sqlstore: an index is missing by which the reaper finds what is due (tables %s*): run semel migrate up, which builds it while consumers go on: %w", s.prefix, semel.ErrSchema)
	}
	return nil
}

// unindexed are the numbers of the indexes that do not stand, and which of them are there
// all the same: they were not built to their end.
func (s *Store) unindexed(ctx context.Context) (missing []int, broken map[int]bool, err error) {
	rows, err := s.db.QueryContext(ctx, s.postgres.Unindexed)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	broken = map[int]bool{}
	for rows.Next() {
		var n int
		var there bool
		if err := rows.Scan(&n, &there); err != nil {
			return nil, nil, err
		}
		missing = append(missing, n)
		broken[n] = there
	}
	return missing, broken, rows.Err()
}

// indexes are the statements that build them.
func (s *Store) indexes() []string {
	if s.postgres == nil {
		return nil
	}
	return strings.Split(s.postgres.Indexes, ";\n\n")
}

// index builds the indexes that do not stand, each beside those that write and in no
// transaction. One that was not built to its end is removed first.
func (s *Store) index(ctx context.Context) error {
	if s.postgres == nil {
		return nil
	}
	missing, broken, err := s.unindexed(ctx)
	if err != nil || len(missing) == 0 {
		return err
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	build, drop := s.indexes(), strings.Split(s.postgres.Unindex, ";\n\n")
	for _, n := range missing {
		if broken[n] {
			if _, err := conn.ExecContext(ctx, drop[n]); err != nil {
				return err
			}
		}
		if _, err := conn.ExecContext(ctx, build[n]); err != nil {
			return err
		}
	}
	return nil
}
