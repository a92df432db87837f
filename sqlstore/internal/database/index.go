package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
)

// ExtraIndex is an index that Migrate builds concurrently. The build does not block writers of the table.
type ExtraIndex struct {
	// SQL statements: Build creates the index, and drop removes it. The statement in the field missing returns a row if
	// the index does not exist or is not valid.
	Build, missing, drop string
	// The purpose of the index, for errors.
	what string
}

// ExtraIndexes returns the indexes for claims, for the limits of removed markers, for the reaper (which removes old
// markers) and for causes.
func (s *DB) ExtraIndexes() []ExtraIndex {
	if s.Postgres == nil {
		return nil
	}
	return []ExtraIndex{s.ofClaims(), s.ofScopes(), s.OfReaper(), s.OfCauses()}
}

func (s *DB) ofClaims() ExtraIndex {
	return ExtraIndex{s.Postgres.IndexDue, s.Postgres.UnindexedDue, s.Postgres.UnindexDue, "due rows are found"}
}

func (s *DB) ofScopes() ExtraIndex {
	return ExtraIndex{s.Postgres.IndexLow, s.Postgres.UnindexedLow, s.Postgres.UnindexLow, "a new source finds its consumer's low-water mark"}
}

// OfReaper returns the index with which the reaper (which removes old markers) finds the markers to remove.
func (s *DB) OfReaper() ExtraIndex {
	return ExtraIndex{s.Postgres.Index, s.Postgres.Unindexed, s.Postgres.Unindex, "the reaper finds markers to remove"}
}

// OfCauses returns the index with which the store finds the rows that a message caused.
func (s *DB) OfCauses() ExtraIndex {
	return ExtraIndex{s.Postgres.IndexCauses, s.Postgres.UnindexedCauses, s.Postgres.UnindexCauses, "the rows that a message caused are found"}
}

// Indexed returns an error if the index does not exist or is not valid.
func (s *DB) Indexed(ctx context.Context, of func(*DB) ExtraIndex) error {
	if s.Postgres == nil {
		return nil
	}
	b := of(s)
	missing, _, err := s.checkIndex(ctx, b)
	if err != nil {
		return s.Blameless("check", err)
	}
	if missing {
		return fmt.Errorf("sqlstore: an index is missing by which %s (tables %s*): run semel migrate up, which builds it while consumers run: %w", b.what, s.Prefix, semel.ErrSchema)
	}
	return nil
}

// checkIndex reports whether an index is missing or not valid. The result broken is true if the index exists
// but its build was interrupted.
func (s *DB) checkIndex(ctx context.Context, b ExtraIndex) (missing, broken bool, err error) {
	err = s.Pool.QueryRowContext(ctx, b.missing).Scan(&broken)
	if errors.Is(err, sql.ErrNoRows) {
		return false, false, nil
	}
	return err == nil, broken, err
}

// Index builds the missing indexes, outside of a transaction. If the build of an index was interrupted, Index first
// removes the incomplete index.
func (s *DB) Index(ctx context.Context) error {
	for _, b := range s.ExtraIndexes() {
		missing, broken, err := s.checkIndex(ctx, b)
		if err != nil {
			return err
		}
		if broken {
			if _, err := s.Pool.ExecContext(ctx, b.drop); err != nil {
				return err
			}
		}
		if missing {
			if _, err := s.Pool.ExecContext(ctx, b.Build); err != nil {
				return err
			}
		}
	}
	return nil
}
