package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
)

// besides is an index that Migrate also builds in a table that is in use: concurrently, so that
// it blocks no writer.
type besides struct {
	// build builds the index, drop removes it. missing returns a row if the index cannot be used.
	build, missing, drop string
	// what the index is for, as errors say it.
	what string
}

// besides returns the indexes of claims, of low-water marks, of the reaper and of causes.
func (s *Store) besides() []besides {
	if s.postgres == nil {
		return nil
	}
	return []besides{s.ofClaims(), s.ofScopes(), s.ofReaper(), s.ofCauses()}
}

func (s *Store) ofClaims() besides {
	return besides{s.postgres.IndexDue, s.postgres.UnindexedDue, s.postgres.UnindexDue, "rows that are due are found"}
}

func (s *Store) ofScopes() besides {
	return besides{s.postgres.IndexLow, s.postgres.UnindexedLow, s.postgres.UnindexLow, "a new source finds its consumer's low-water mark"}
}

func (s *Store) ofReaper() besides {
	return besides{s.postgres.Index, s.postgres.Unindexed, s.postgres.Unindex, "the reaper finds what is due"}
}

func (s *Store) ofCauses() besides {
	return besides{s.postgres.IndexCauses, s.postgres.UnindexedCauses, s.postgres.UnindexCauses, "what a message caused is found"}
}

// indexed returns an error if the index cannot be used.
func (s *Store) indexed(ctx context.Context, of func(*Store) besides) error {
	if s.postgres == nil {
		return nil
	}
	b := of(s)
	missing, _, err := s.unindexed(ctx, b)
	if err != nil {
		return s.blameless("check", err)
	}
	if missing {
		return fmt.Errorf("sqlstore: an index is missing by which %s (tables %s*): run semel migrate up, which builds it while consumers go on: %w", b.what, s.prefix, semel.ErrSchema)
	}
	return nil
}

// unindexed reports whether an index cannot be used, and whether it exists all the same because
// its build was interrupted.
func (s *Store) unindexed(ctx context.Context, b besides) (missing, broken bool, err error) {
	err = s.db.QueryRowContext(ctx, b.missing).Scan(&broken)
	if errors.Is(err, sql.ErrNoRows) {
		return false, false, nil
	}
	return err == nil, broken, err
}

// index builds the indexes that are missing, outside of a transaction. An index whose build was
// interrupted is removed first.
func (s *Store) index(ctx context.Context) error {
	for _, b := range s.besides() {
		missing, broken, err := s.unindexed(ctx, b)
		if err != nil {
			return err
		}
		if broken {
			if _, err := s.db.ExecContext(ctx, b.drop); err != nil {
				return err
			}
		}
		if missing {
			if _, err := s.db.ExecContext(ctx, b.build); err != nil {
				return err
			}
		}
	}
	return nil
}
