package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
)

// indexed reports that the index which the reaper needs does not stand.
func (s *Store) indexed(ctx context.Context) error {
	if s.postgres == nil {
		return nil
	}
	missing, _, err := s.unindexed(ctx)
	if err != nil {
		return s.blameless("check", err)
	}
	if missing {
		return fmt.Errorf("sqlstore: an index is missing by which the reaper finds what is due (tables %s*): run semel migrate up, which builds it while consumers go on: %w", s.prefix, semel.ErrSchema)
	}
	return nil
}

// unindexed tells whether the index does not stand, and whether it is there all the same: it
// was not built to its end.
func (s *Store) unindexed(ctx context.Context) (missing, broken bool, err error) {
	err = s.db.QueryRowContext(ctx, s.postgres.Unindexed).Scan(&broken)
	if errors.Is(err, sql.ErrNoRows) {
		return false, false, nil
	}
	return err == nil, broken, err
}

// index builds the index if it does not stand, beside those that write and in no transaction.
// One that was not built to its end is removed first.
func (s *Store) index(ctx context.Context) error {
	if s.postgres == nil {
		return nil
	}
	missing, broken, err := s.unindexed(ctx)
	if err != nil || !missing {
		return err
	}
	if broken {
		if _, err := s.db.ExecContext(ctx, s.postgres.Unindex); err != nil {
			return err
		}
	}
	_, err = s.db.ExecContext(ctx, s.postgres.Index)
	return err
}
