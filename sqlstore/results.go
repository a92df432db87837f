package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
)

// KeepResult implements admin.Results.
func (s *Store) KeepResult(ctx context.Context, tx *sql.Tx, of admin.ResultOf, result []byte) error {
	args, err := keptResult(s.db, of, result)
	if err == nil {
		err = wrapRowError(s.db, "results", database.WriteIn(ctx, tx, sqlform.Results, 1, s.db.SQL.KeepResult, args...))
	}
	return resultError(err)
}

// wrapRowError converts an error about a row that a trigger or rule has prevented: the error counts as a fault of the
// store and not as an attempt of a message. wrapRowError returns other errors unchanged.
func wrapRowError(db *database.DB, doing string, err error) error {
	var swallowed *sqlform.SwallowedError
	if errors.As(err, &swallowed) {
		return db.Blameless(doing, err)
	}
	return err
}

func keptResult(db *database.DB, of admin.ResultOf, result []byte) ([]any, error) {
	id, _ := sqlform.ID(of.ID)
	kept, err := db.Crypt.Hide(sqlform.OfResult, of.ID, database.NotNil(result))
	return []any{of.Scope, id, kept}, err
}

func resultError(err error) error {
	if err != nil {
		return fmt.Errorf("sqlstore: result: %w", err)
	}
	return nil
}

// endResult is a result that is written with the commit.
type endResult struct {
	of     admin.ResultOf
	result []byte
}

var _ admin.CommitResultWriter = (*batch)(nil)

// WriteResultAtCommit implements admin.CommitResultWriter.
func (b *batch) WriteResultAtCommit(of admin.ResultOf, result []byte) {
	b.results = append(b.results, endResult{of, result})
}

// keepAndUnguard writes the results and removes the guard. In PostgreSQL, one statement writes the last result and
// removes the guard; usually there is only one result.
func (b *batch) keepAndUnguard(ctx context.Context) error {
	for i, r := range b.results {
		args, err := keptResult(b.DB, r.of, r.result)
		switch {
		case err != nil:
			return resultError(err)
		case b.guarded && b.DB.Postgres != nil && i == len(b.results)-1:
			return b.unguardKeeping(ctx, args)
		}
		if err := database.WriteIn(ctx, b.InTx, sqlform.Results, 1, b.DB.SQL.KeepResult, args...); err != nil {
			return resultError(wrapRowError(b.DB, "results", err))
		}
	}
	if !b.guarded {
		return nil
	}
	return b.unguard(ctx, b.DB.SQL.Unguard)
}

// unguardKeeping writes a result and removes the guard with one statement. If a trigger or rule prevents the write, the
// statement does not remove the guard: a guard that still exists shows that the result was not written.
func (b *batch) unguardKeeping(ctx context.Context, args []any) error {
	err := b.unguard(ctx, b.DB.Postgres.UnguardKeeping, args...)
	if errors.Is(err, errRolledBack) && b.unguard(ctx, b.DB.SQL.Unguard) == nil {
		return resultError(wrapRowError(b.DB, "results", sqlform.WrittenIn(sqlform.Results, 0, 1)))
	}
	return err
}

// Results implements admin.Results.
func (s *Store) Results(ctx context.Context, of []admin.ResultOf) ([][]byte, error) {
	results := make([][]byte, len(of))
	all := make([]int, len(of))
	for i := range all {
		all[i] = i
	}
	for chunk := range s.db.Dialect.Chunks(all) {
		if err := readResults(ctx, s.db, of, chunk, results); err != nil {
			return nil, s.db.Blameless("results", err)
		}
	}
	return results, nil
}

func readResults(ctx context.Context, s *database.DB, of []admin.ResultOf, chunk []int, results [][]byte) error {
	flat := make([]any, 0, 3*len(chunk))
	for _, i := range chunk {
		id, _ := sqlform.ID(of[i].ID)
		flat = append(flat, int64(i), of[i].Scope, id)
	}
	text, args := s.Bulk(s.SQL.Results, 3, flat)
	return database.EachRow(ctx, s.Pool, text, func(rows *sql.Rows) error {
		var i int
		var result []byte
		if err := rows.Scan(&i, &result); err != nil {
			return err
		}
		shown, err := s.Crypt.Show(sqlform.OfResult, of[i].ID, result)
		if err != nil {
			return err
		}
		results[i] = database.NotNil(shown)
		return nil
	}, args...)
}
