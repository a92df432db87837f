package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

var (
	_ store.Results[*sql.Tx] = (*Store)(nil)
)

// KeepResult implements store.Results.
func (s *Store) KeepResult(ctx context.Context, tx *sql.Tx, of store.ResultOf, result []byte) error {
	args, err := s.keptResult(of, result)
	if err == nil {
		err = s.ourOwn("results", writeIn(ctx, tx, sqlform.Results, 1, s.sql.KeepResult, args...))
	}
	return resultError(err)
}

// ourOwn has an error that says that a row was swallowed blame no message; any other stays.
func (s *Store) ourOwn(doing string, err error) error {
	var swallowed *sqlform.SwallowedError
	if errors.As(err, &swallowed) {
		return s.blameless(doing, err)
	}
	return err
}

func (s *Store) keptResult(of store.ResultOf, result []byte) ([]any, error) {
	id, _ := sqlform.ID(of.ID)
	kept, err := s.crypt.Hide(sqlform.OfResult, of.ID, notNil(result))
	return []any{of.Scope, id, kept}, err
}

func resultError(err error) error {
	if err != nil {
		return fmt.Errorf("sqlstore: result: %w", err)
	}
	return nil
}

// endResult is a result that a commit keeps.
type endResult struct {
	of     store.ResultOf
	result []byte
}

var _ admin.CommitResultWriter = (*batch)(nil)

// WriteResultAtCommit implements admin.CommitResultWriter.
func (b *batch) WriteResultAtCommit(of store.ResultOf, result []byte) {
	b.results = append(b.results, endResult{of, result})
}

// keepAndUnguard writes the results and opens the guard. In PostgreSQL the last result, which
// is mostly the only one, goes with the guard.
func (b *batch) keepAndUnguard(ctx context.Context) error {
	for i, r := range b.results {
		args, err := b.store.keptResult(r.of, r.result)
		switch {
		case err != nil:
			return resultError(err)
		case b.guarded && b.store.postgres != nil && i == len(b.results)-1:
			return b.unguardKeeping(ctx, args)
		}
		if err := writeIn(ctx, b.tx, sqlform.Results, 1, b.store.sql.KeepResult, args...); err != nil {
			return resultError(b.store.ourOwn("results", err))
		}
	}
	if !b.guarded {
		return nil
	}
	return b.unguard(ctx, b.store.sql.Unguard)
}

// unguardKeeping opens the guard and keeps a result. The statement opens no guard if the
// result was swallowed: then the guard is still there to be opened.
func (b *batch) unguardKeeping(ctx context.Context, args []any) error {
	err := b.unguard(ctx, b.store.postgres.UnguardKeeping, args...)
	if errors.Is(err, errRolledBack) && b.unguard(ctx, b.store.sql.Unguard) == nil {
		return resultError(b.store.ourOwn("results", sqlform.WrittenIn(sqlform.Results, 0, 1)))
	}
	return err
}

// notNil are bytes that no driver takes for NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Results implements store.Results.
func (s *Store) Results(ctx context.Context, of []store.ResultOf) ([][]byte, error) {
	results := make([][]byte, len(of))
	all := make([]int, len(of))
	for i := range all {
		all[i] = i
	}
	for chunk := range s.dialect.chunks(all) {
		if err := s.readResults(ctx, of, chunk, results); err != nil {
			return nil, s.blameless("results", err)
		}
	}
	return results, nil
}

func (s *Store) readResults(ctx context.Context, of []store.ResultOf, chunk []int, results [][]byte) error {
	flat := make([]any, 0, 3*len(chunk))
	for _, i := range chunk {
		id, _ := sqlform.ID(of[i].ID)
		flat = append(flat, int64(i), of[i].Scope, id)
	}
	text, args := s.bulk(s.sql.Results, 3, flat)
	rows, err := s.db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var i int
		var result []byte
		if err := rows.Scan(&i, &result); err != nil {
			return err
		}
		if result, err = s.crypt.Show(sqlform.OfResult, of[i].ID, result); err != nil {
			return err
		}
		results[i] = notNil(result)
	}
	return rows.Err()
}
