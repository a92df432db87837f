package marking

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-go/semel/sqlstore/internal/daily"
	"github.com/semel-go/semel/sqlstore/internal/database"
)

// Scope implements store.TxStore.
func (s *Store) Scope(ctx context.Context, consumer, source string, generation int64) (int64, error) {
	numbers, err := s.Scopes(ctx, consumer, []string{source}, generation)
	if err != nil {
		return 0, err
	}
	return numbers[0], nil
}

// Scopes implements admin.Interner. In PostgreSQL, one statement reads all scopes (consumer, source and generation)
// that are not cached, and one transaction writes the missing scopes.
func (s *Store) Scopes(ctx context.Context, consumer string, sources []string, generation int64) ([]int64, error) {
	numbers := s.db.Remembered(consumer, sources, generation)
	if missing := missingNumbers(numbers); len(missing) > 0 {
		if err := intern(ctx, s.db, consumer, sources, generation, numbers); err != nil {
			return nil, s.db.Blameless("scope", err)
		}
		s.db.Remember(consumer, sources, generation, numbers)
	}
	return numbers, nil
}

// missingNumbers returns the indexes of the sources whose number is not known. The number 0 is never used.
func missingNumbers(numbers []int64) (missing []int) {
	for i, n := range numbers {
		if n == 0 {
			missing = append(missing, i)
		}
	}
	return missing
}

// ScopeIn implements store.CallerTx.
func (s *Store) ScopeIn(ctx context.Context, tx *sql.Tx, consumer, source string, generation int64) (n int64, err error) {
	key := database.Scope{Consumer: consumer, Source: source, Generation: generation}
	if err = checkScope(s.db, key); err == nil {
		err = daily.NotDated(ctx, s.db, tx, consumer)
	}
	if err == nil {
		n, err = internIn(ctx, s.db, tx, key)
	}
	if err != nil {
		return 0, s.db.Blameless("scope", err)
	}
	return n, nil
}

// checkScope returns an error if the store must not create a scope (consumer, source and generation).
func checkScope(db *database.DB, key database.Scope) error {
	if err := db.Foreign.Admit(key.Consumer, key.Source, key.Generation); err != nil {
		return err
	}
	return db.File.Check() // without this check, a new connection would create an empty file
}

// intern sets the numbers of scopes (consumer, source and generation) that are not known, and writes the missing
// scopes.
func intern(ctx context.Context, db *database.DB, consumer string, sources []string, generation int64, numbers []int64) error {
	for _, i := range missingNumbers(numbers) {
		if err := checkScope(db, database.Scope{Consumer: consumer, Source: sources[i], Generation: generation}); err != nil {
			return err
		}
	}
	if err := daily.NotDated(ctx, db, db.Pool, consumer); err != nil {
		return err
	}
	if err := findScopes(ctx, db, db.Pool, consumer, sources, generation, numbers); err != nil {
		return err
	}
	missing := missingNumbers(numbers)
	if len(missing) == 0 {
		return nil
	}
	return db.Write(ctx, func(tx *sql.Tx) error {
		if err := newScopes(ctx, db, tx, consumer, sources, generation, missing); err != nil {
			return err
		}
		err := findScopes(ctx, db, tx, consumer, sources, generation, numbers)
		if left := missingNumbers(numbers); err == nil && len(left) > 0 {
			err = fmt.Errorf("source %q of consumer %q has no row in %sscopes although it was just written: something prevents writes to that table, such as a trigger; semel migrate status names it", sources[left[0]], consumer, db.Prefix)
		}
		return err
	})
}

// newScopes writes the missing scopes before any scope is read, because a transaction that reads first may
// fail when it writes.
func newScopes(ctx context.Context, db *database.DB, tx *sql.Tx, consumer string, sources []string, generation int64, missing []int) error {
	if db.Postgres != nil {
		_, err := tx.ExecContext(ctx, db.Postgres.NewScopes, []byte(consumer), sourcesOf(sources, missing), generation)
		return err
	}
	for _, i := range missing {
		if _, err := tx.ExecContext(ctx, db.SQL.NewScope, database.Scope{Consumer: consumer, Source: sources[i], Generation: generation}.Args()...); err != nil {
			return err
		}
	}
	return nil
}

// findScopes sets the numbers of the scopes (consumer, source and generation) that exist.
func findScopes(ctx context.Context, s *database.DB, db database.Queryer, consumer string, sources []string, generation int64, numbers []int64) error {
	missing := missingNumbers(numbers)
	if s.Postgres != nil {
		return database.EachRow(ctx, db, s.Postgres.SourceScopes, func(rows *sql.Rows) error {
			var k int
			var n sql.NullInt64
			err := rows.Scan(&k, &n)
			if err == nil {
				numbers[missing[k-1]] = n.Int64
			}
			return err
		}, []byte(consumer), sourcesOf(sources, missing), generation)
	}
	for _, i := range missing {
		err := db.QueryRowContext(ctx, s.SQL.Scope, database.Scope{Consumer: consumer, Source: sources[i], Generation: generation}.Args()...).Scan(&numbers[i])
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	return nil
}

// sourcesOf returns a selection of the sources as a PostgreSQL array.
func sourcesOf(sources []string, some []int) any {
	column := make([][]byte, len(some))
	for at, i := range some {
		column[at] = []byte(sources[i])
	}
	return database.Array(column)
}

// internIn first writes a scope and then reads the scope's number, because a transaction that reads first may fail when
// it writes.
func internIn(ctx context.Context, db *database.DB, tx *sql.Tx, key database.Scope) (n int64, err error) {
	if _, err := tx.ExecContext(ctx, db.SQL.NewScope, key.Args()...); err != nil {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, db.SQL.Scope, key.Args()...).Scan(&n)
	return n, err
}
