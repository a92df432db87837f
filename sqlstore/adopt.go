package sqlstore

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

// Adopted is a table of processed messages that other code made and may go on
// filling. See Store.Adopt.
type Adopted struct {
	// Consumer is the name of the only consumer that uses the store.
	Consumer string
	// Source is the only source that its identities have, where the table has
	// no column for sources; empty if they have none.
	Source string
	// Table is written as in SQL; with its schema where the search_path does
	// not lead to it.
	Table string
	// ID is the column of ids, of type text, varchar, uuid, bytea, bigint,
	// integer or smallint. Names of columns are in the catalogue's spelling.
	ID string
	// ConsumerColumn, SourceColumn and AtColumn name those for the consumer,
	// the source and the time; empty where the table has none, or where its
	// default is right. A unique key must have exactly the first two, if they
	// are named, and ID.
	ConsumerColumn, SourceColumn, AtColumn string
	// Values are what further columns get, such as a status. A row of the table
	// says applied whatever they are. The value of ConsumerColumn is Consumer,
	// unless it is here.
	Values map[string]string
}

// Adopt returns a store on the same database for one consumer, which marks in
// a table of the user's as well as in Semel's: each row of the table counts as
// applied, and whatever the consumer applies has a row there, written in the
// same transaction. So other code that marks there may run before, after and
// at the same time, and each message takes effect once. What is parked,
// discarded or dead-lettered has no row there. Rows that the other code wrote
// have no fingerprint: other content under their ids is a duplicate.
//
// An id that the column cannot hold is no usable identity.
//
// The table and its columns are checked here and by Check; an error that wraps
// semel.ErrSchema says what to change. Semel's own tables must be there: Adopt
// notes which consumer has the table, and refuses another. SQLite:
// semel.ErrUnsupported.
func (s *Store) Adopt(ctx context.Context, a Adopted) (*Store, error) {
	return s.adopt(ctx, adoption.Options(a))
}

// adopt opens the store of an adopted table.
func (s *Store) adopt(ctx context.Context, a adoption.Options) (*Store, error) {
	if s.postgres == nil {
		return nil, fmt.Errorf("sqlstore: a %s table cannot be adopted, seed its ids instead: %w", s.dialect.name, semel.ErrUnsupported)
	}
	if a.Consumer == "" || strings.HasPrefix(a.Source, "semel:") {
		return nil, errors.New("sqlstore: adopting needs the name of a consumer, and a source outside of semel's own, which begin with \"semel:\"")
	}
	adopted, err := adoption.New(ctx, s.db, s.postgres, s.prefix, a)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: adopting %s: %w", a.Table, s.hint(err))
	}
	texts, err := s.dialect.load(s.names, "adopted.sql")
	if err != nil {
		return nil, err
	}
	parts := strings.NewReplacer("{row ends}", s.postgres.RowEnds, "{owned}", s.postgres.Owned)
	for name, text := range texts {
		texts[name] = adopted.Statement(parts.Replace(text))
	}
	var statements sqlform.Adopted
	if err := sqlform.Fill(&statements, texts); err != nil {
		return nil, err
	}
	own := &Store{db: s.db, dialect: s.dialect, prefix: s.prefix, names: s.names, crypt: s.crypt, postgres: s.postgres.With(statements),
		guards: s.guards, level: s.level, writers: s.writers, scopes: map[scope]int64{}, beside: adopted}
	own.sql = &own.postgres.Statements
	if err := own.rehearse(ctx, adopted.Name()); err != nil {
		return nil, err
	}
	return own, nil
}

// rehearse has the database plan what would be written, so that a value of
// another type or a missing right is not found with the first message.
func (s *Store) rehearse(ctx context.Context, table string) error {
	const none = "{}"
	_, err := s.db.ExecContext(ctx, "explain "+s.sql.Mark, none, none, none, none, none, none)
	if err != nil && s.Classify(err) == store.ClassPermanent {
		err = fmt.Errorf("%w: correct it: %w", err, semel.ErrSchema)
	}
	if err != nil {
		return fmt.Errorf("sqlstore: adopting %s: the database refuses what would be written: %w", table, err)
	}
	return nil
}
