package database

import (
	"context"
	"database/sql"
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// ActedArg is a row in the argument of statements about acts.
type ActedArg struct {
	K int   `json:"k"`
	N int64 `json:"n"`
	R int64 `json:"r"`
}

// ActedNumbers is actedRows for rows of which only the numbers are known.
func ActedNumbers(numbers ...int64) string {
	all := make([]ActedArg, len(numbers))
	for k, n := range numbers {
		all[k] = ActedArg{K: k, N: n}
	}
	return sqlform.JSON(all)
}

// NumbersSeen is numbersOf for the rows that the caller of an act names.
func NumbersSeen(rows []store.RowRevision) []int64 {
	all := make([]int64, len(rows))
	for k, r := range rows {
		all[k] = r.Number
	}
	return all
}

// RecordOn records an act on each row with one of these numbers, of which 0 is no row.
func (s *DB) RecordOn(ctx context.Context, tx *sql.Tx, a store.Act, result string, numbers ...int64) error {
	return WriteIn(ctx, tx, sqlform.Acts, len(numbers), s.SQL.RecordActs, ActedNumbers(numbers...), sqlform.Plain(a.Verb), sqlform.Plain(a.Who), sqlform.Plain(a.Why), result)
}

// Record records an act on a row; number 0 is no row.
func (s *DB) Record(ctx context.Context, tx *sql.Tx, a store.Act, number int64, result string) error {
	return s.RecordOn(ctx, tx, a, result, number)
}

// Answer passes on what an act's caller asks for and wraps the rest.
func (s *DB) Answer(doing string, err error) error {
	if err == nil || errors.Is(err, semel.ErrChanged) || errors.Is(err, semel.ErrState) || errors.Is(err, semel.ErrConflict) {
		return err
	}
	return s.Blameless(doing, err)
}
