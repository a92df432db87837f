package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-go/semel/internal/admin"
)

var _ admin.Interner = (*Store)(nil)

type scope struct {
	consumer, source string
	generation       int64
}

func (s scope) args() []any { return []any{[]byte(s.consumer), []byte(s.source), s.generation} }

// mostScopes bounds the cache of scopes; a full cache starts anew.
const mostScopes = 10_000

// Scope implements store.TxStore.
func (s *Store) Scope(ctx context.Context, consumer, source string, generation int64) (int64, error) {
	numbers, err := s.Scopes(ctx, consumer, []string{source}, generation)
	if err != nil {
		return 0, err
	}
	return numbers[0], nil
}

// Scopes implements admin.Interner: PostgreSQL is asked once for all that this process does
// not remember, and those that are not there are written in one transaction.
func (s *Store) Scopes(ctx context.Context, consumer string, sources []string, generation int64) ([]int64, error) {
	numbers := make([]int64, len(sources))
	s.mu.Lock()
	for i, source := range sources {
		numbers[i] = s.scopes[scope{consumer, source, generation}]
	}
	s.mu.Unlock()
	if missing := s.unnumbered(numbers); len(missing) > 0 {
		if err := s.intern(ctx, consumer, sources, generation, numbers); err != nil {
			return nil, s.blameless("scope", err)
		}
		s.remember(consumer, sources, generation, numbers)
	}
	return numbers, nil
}

// unnumbered are the indexes of the numbers that are not known. No scope has the number 0.
func (s *Store) unnumbered(numbers []int64) (missing []int) {
	for i, n := range numbers {
		if n == 0 {
			missing = append(missing, i)
		}
	}
	return missing
}

func (s *Store) remember(consumer string, sources []string, generation int64, numbers []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.scopes)+len(sources) > mostScopes {
		clear(s.scopes)
	}
	for i, source := range sources[:min(len(sources), mostScopes)] {
		s.scopes[scope{consumer, source, generation}] = numbers[i]
	}
}

// forgetScopes empties the cache after an outage: see the scopes of package consumer.
func (s *Store) forgetScopes() {
	s.mu.Lock()
	clear(s.scopes)
	s.mu.Unlock()
}

// ScopeIn implements store.CallerTx.
func (s *Store) ScopeIn(ctx context.Context, tx *sql.Tx, consumer, source string, generation int64) (n int64, err error) {
	key := scope{consumer, source, generation}
	if err = s.admits(key); err == nil {
		err = s.notDated(ctx, tx, consumer)
	}
	if err == nil {
		n, err = s.internIn(ctx, tx, key)
	}
	if err != nil {
		return 0, s.blameless("scope", err)
	}
	return n, nil
}

// admits says why a scope cannot be interned, if it cannot.
func (s *Store) admits(key scope) error {
	if err := s.beside.Admit(key.consumer, key.source, key.generation); err != nil {
		return err
	}
	return s.file.check() // a new connection would make an empty file
}

// intern finds the numbers that are not known, and writes the scopes that are not there.
func (s *Store) intern(ctx context.Context, consumer string, sources []string, generation int64, numbers []int64) error {
	for _, i := range s.unnumbered(numbers) {
		if err := s.admits(scope{consumer, sources[i], generation}); err != nil {
			return err
		}
	}
	if err := s.notDated(ctx, s.db, consumer); err != nil {
		return err
	}
	if err := s.findScopes(ctx, s.db, consumer, sources, generation, numbers); err != nil {
		return err
	}
	missing := s.unnumbered(numbers)
	if len(missing) == 0 {
		return nil
	}
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := s.newScopes(ctx, tx, consumer, sources, generation, missing); err != nil {
			return err
		}
		err := s.findScopes(ctx, tx, consumer, sources, generation, numbers)
		if left := s.unnumbered(numbers); err == nil && len(left) > 0 {
			err = fmt.Errorf("source %q of consumer %q has no row in %sscopes although it was written: something keeps that table from being written, such as a trigger; semel migrate status names it", sources[left[0]], consumer, s.prefix)
		}
		return err
	})
}

// newScopes writes scopes before any is read: see lockAnd.
func (s *Store) newScopes(ctx context.Context, tx *sql.Tx, consumer string, sources []string, generation int64, missing []int) error {
	if s.postgres != nil {
		_, err := tx.ExecContext(ctx, s.postgres.NewScopes, []byte(consumer), sourcesOf(sources, missing), generation)
		return err
	}
	for _, i := range missing {
		if _, err := tx.ExecContext(ctx, s.sql.NewScope, scope{consumer, sources[i], generation}.args()...); err != nil {
			return err
		}
	}
	return nil
}

// findScopes fills in the numbers of those scopes that there are.
func (s *Store) findScopes(ctx context.Context, db queries, consumer string, sources []string, generation int64, numbers []int64) error {
	missing := s.unnumbered(numbers)
	if s.postgres != nil {
		return eachRow(ctx, db, s.postgres.SourceScopes, func(rows *sql.Rows) error {
			var k int
			var n sql.NullInt64
			err := rows.Scan(&k, &n)
			if err == nil {
				numbers[missing[k-1]] = n.Int64
			}
			return err
		}, []any{[]byte(consumer), sourcesOf(sources, missing), generation})
	}
	for _, i := range missing {
		err := db.QueryRowContext(ctx, s.sql.Scope, scope{consumer, sources[i], generation}.args()...).Scan(&numbers[i])
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	return nil
}

// sourcesOf are some of the sources as an array of PostgreSQL.
func sourcesOf(sources []string, some []int) any {
	column := make([][]byte, len(some))
	for at, i := range some {
		column[at] = []byte(sources[i])
	}
	return array(column)
}

// internIn writes before it reads: see lockAnd.
func (s *Store) internIn(ctx context.Context, tx *sql.Tx, key scope) (n int64, err error) {
	if _, err := tx.ExecContext(ctx, s.sql.NewScope, key.args()...); err != nil {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, s.sql.Scope, key.args()...).Scan(&n)
	return n, err
}
