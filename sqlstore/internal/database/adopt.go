package database

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/adoption"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// Adopt opens the store of an adopted table.
func (s *DB) Adopt(ctx context.Context, a adoption.Options) (*DB, error) {
	if s.Postgres == nil {
		return nil, fmt.Errorf("sqlstore: a %s table cannot be adopted, seed its ids instead: %w", s.Dialect.Name, semel.ErrUnsupported)
	}
	if a.Consumer == "" || strings.HasPrefix(a.Source, "semel:") {
		return nil, errors.New("sqlstore: adopting needs the name of a consumer, and a source outside of semel's own, which begin with \"semel:\"")
	}
	adopted, err := adoption.New(ctx, s.Pool, s.Postgres, s.Prefix, a)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: adopting %s: %w", a.Table, s.Hint(err))
	}
	texts, err := s.Dialect.Load(s.Names, "adopted.sql")
	if err != nil {
		return nil, err
	}
	parts := strings.NewReplacer("{row ends}", s.Postgres.RowEnds, "{owned}", s.Postgres.Owned)
	for name, text := range texts {
		texts[name] = adopted.Statement(parts.Replace(text))
	}
	var statements sqlform.Adopted
	if err := sqlform.Fill(&statements, texts); err != nil {
		return nil, err
	}
	own := &DB{Pool: s.Pool, Dialect: s.Dialect, Prefix: s.Prefix, Names: s.Names, Crypt: s.Crypt, Postgres: s.Postgres.With(statements),
		Guards: s.Guards, Level: s.Level, writers: s.writers, scopes: map[Scope]int64{}, Foreign: adopted}
	own.SQL = &own.Postgres.Statements
	if err := own.rehearse(ctx, adopted.Name()); err != nil {
		return nil, err
	}
	return own, nil
}

// rehearse has the database plan what would be written, so that a value of
// another type or a missing right is not found with the first message.
func (s *DB) rehearse(ctx context.Context, table string) error {
	const none = "{}"
	_, err := s.Pool.ExecContext(ctx, "explain "+s.SQL.Mark, none, none, none, none, none, none)
	if err != nil && s.Classify(err) == store.ClassPermanent {
		err = fmt.Errorf("%w: correct it: %w", err, semel.ErrSchema)
	}
	if err != nil {
		return fmt.Errorf("sqlstore: adopting %s: the database refuses what would be written: %w", table, err)
	}
	return nil
}
