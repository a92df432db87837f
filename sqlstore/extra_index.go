package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
)

// besides is an index that is built with the tables, and where these have rows already
// beside those that write.
type besides struct {
	// build builds it, missing tells whether it does not stand, drop removes it.
	build, missing, drop string
	// what is done by it.
	what string
}

// besides are those that claims, the reaper and what is sent again need.
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

// indexed reports that an index does not stand.
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

// unindexed tells whether an index does not stand, and whether it is there all the same: it
// was not built to its end.
func (s *Store) unindexed(ctx context.Context, b besides) (missing, broken bool, err error) {
	err = s.db.QueryRowContext(ctx, b.missing).Scan(&broken)
	if errors.Is(err, sql.ErrNoRows) {
		return false, false, nil
	}
	return err == nil, broken, err
}

// index builds the indexes that do not stand, beside those that write and in no transaction.
// One that was not built to its end is removed first.
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

// namedAtOnce is how many rows one transaction of nameRows names, as the statement says.
const namedAtOnce = 1000

// nameRows gives rows that wait, and that an earlier release wrote, their consumer. Those that
// others hold locked are left to the claims, which name what they meet when it is due, and so are
// all where the role may not write. It fails only when its caller cancels. SQLite's migration has
// done it.
func (s *Store) nameRows(ctx context.Context) error {
	if s.postgres == nil {
		return nil
	}
	for named := int64(namedAtOnce); named == namedAtOnce; {
		err := s.write(ctx, func(tx *sql.Tx) error {
			done, err := tx.ExecContext(ctx, s.postgres.NameRows)
			if err == nil {
				named, err = done.RowsAffected()
			}
			return err
		})
		if err != nil {
			return ctx.Err()
		}
	}
	return nil
}
