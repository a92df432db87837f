package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/sqlform"
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
	if s.dialect.adopted == nil {
		return nil, fmt.Errorf("sqlstore: a %s table cannot be adopted, seed its ids instead: %w", s.dialect.name, semel.ErrUnsupported)
	}
	if a.Consumer == "" || strings.HasPrefix(a.Source, "semel:") {
		return nil, errors.New("sqlstore: adopting needs the name of a consumer, and a source outside of semel's own, which begin with \"semel:\"")
	}
	p, err := s.plan(ctx, a)
	if err == nil {
		err = s.claim(ctx, p)
	}
	if err != nil {
		return nil, fmt.Errorf("sqlstore: adopting %s: %w", a.Table, s.hint(err))
	}
	texts, err := s.dialect.load(s.names, "adopted.sql")
	if err != nil {
		return nil, err
	}
	for name, text := range texts {
		texts[name] = p.names.Replace(text)
	}
	var statements sqlform.Adopted
	if err := sqlform.Fill(&statements, texts); err != nil {
		return nil, err
	}
	own := &Store{db: s.db, dialect: s.dialect, prefix: s.prefix, names: s.names, postgres: s.postgres.With(statements),
		guards: s.guards, level: s.level, writers: s.writers, scopes: map[scope]int64{}, adopted: p}
	own.sql = &own.postgres.Statements
	if err := own.rehearse(ctx); err != nil {
		return nil, err
	}
	return own, nil
}

// rehearse has the database plan what would be written, so that a value of
// another type or a missing right is not found with the first message.
func (s *Store) rehearse(ctx context.Context) error {
	const none = "{}"
	_, err := s.db.ExecContext(ctx, "explain "+s.sql.Mark, none, none, none, none, none, none)
	if err != nil && s.Classify(err) == contract.ClassPermanent {
		err = fmt.Errorf("%w: correct it: %w", err, semel.ErrSchema)
	}
	if err != nil {
		return fmt.Errorf("sqlstore: adopting %s: the database refuses what would be written: %w", s.adopted.table.name, err)
	}
	return nil
}

// adoption is a table that fits, with what statements say of it.
type adoption struct {
	Adopted
	table  *oldTable
	id     *oldColumn
	source *oldColumn // nil if the table has no column for it
	names  *strings.Replacer
	// owner names what two consumers cannot share.
	owner string
}

// plan holds the table to what adopting it needs.
func (s *Store) plan(ctx context.Context, a Adopted) (*adoption, error) {
	t, err := s.describe(ctx, a.Table)
	if err != nil {
		return nil, err
	}
	p := &adoption{Adopted: a, table: t}
	if p.id, err = t.idColumn(a.ID, s.dialect.adopted.ids); err != nil {
		return nil, err
	}
	if !p.id.exact {
		return nil, fmt.Errorf("column %s of %s compares ids by a collation that takes different ones for equal: give it another collation: %w", a.ID, t.name, semel.ErrSchema)
	}
	if p.SourceColumn != "" {
		if p.source, err = t.idColumn(p.SourceColumn, s.dialect.adopted.texts); err != nil {
			return nil, err
		}
	}
	if err := p.fill(s.dialect.adopted); err != nil {
		return nil, err
	}
	return p, s.inspect(ctx, p)
}

// fill decides what each column of a row gets, and puts it into the statements.
func (p *adoption) fill(d *adopting) error {
	values := map[string]string{}
	for name, value := range p.Values {
		c, err := p.table.column(name)
		if err != nil {
			return err
		}
		if values[name], err = c.constant(d, value); err != nil {
			return err
		}
	}
	values[p.ID] = "k.old"
	origin, judges, judged := "null::text", "t."+p.id.quoted, "k.old"
	if p.source != nil {
		origin, judges, judged = d.source+p.source.collate, judges+", t."+p.source.quoted, "(k.old, k.origin)"
		values[p.source.name] = "k.origin"
	}
	if err := p.fillConsumer(d, values); err != nil {
		return err
	}
	if p.AtColumn != "" {
		if _, err := p.table.idColumn(p.AtColumn, d.times); err != nil {
			return err
		}
		values[p.AtColumn] = d.now
	}
	columns, all, err := p.table.row(values)
	if err != nil {
		return err
	}
	key, same := p.key(values)
	p.names = strings.NewReplacer("{table}", p.table.name, "{id}", p.id.quoted, "{old}", d.id(p.id), "{origin}", origin,
		"{judges}", judges, "{judged}", judged, "{same}", same, "{key}", key, "{columns}", columns, "{values}", all)
	return nil
}

// fillConsumer decides whose rows are the consumer's.
func (p *adoption) fillConsumer(d *adopting, values map[string]string) error {
	p.owner = p.table.name
	if p.ConsumerColumn == "" {
		return nil
	}
	c, err := p.table.column(p.ConsumerColumn)
	if err != nil {
		return err
	}
	if values[c.name] == "" {
		if values[c.name], err = c.constant(d, p.Consumer); err != nil {
			return err
		}
	}
	p.owner += " " + values[c.name]
	return nil
}

// constant is a value that the column gets in every row.
func (c *oldColumn) constant(d *adopting, value string) (string, error) {
	if err := c.holds(value, longestOld); err != nil {
		return "", fmt.Errorf("the value for %s has %w: %w", c.name, err, semel.ErrSchema)
	}
	return d.literal(value) + "::" + c.kind, nil
}

// key is the list of the columns of the unique key, and the condition that a
// row t is that of an identity k.
func (p *adoption) key(values map[string]string) (columns, same string) {
	var names, equal []string
	for _, c := range p.table.columns {
		if slices.Contains(p.keyed(), c.name) {
			names, equal = append(names, c.quoted), append(equal, "t."+c.quoted+" = "+values[c.name])
		}
	}
	return strings.Join(names, ", "), strings.Join(equal, " and ")
}

// keyed are the names of the columns of the unique key.
func (p *adoption) keyed() []string {
	return slices.DeleteFunc([]string{p.ID, p.ConsumerColumn, p.SourceColumn}, func(name string) bool { return name == "" })
}

// row is the list of columns of a new row, and of their values.
func (t *oldTable) row(values map[string]string) (columns, all string, err error) {
	var names, texts, missing []string
	for _, c := range t.columns {
		value, given := values[c.name]
		switch {
		case given:
			names, texts = append(names, c.quoted), append(texts, value)
		case c.needed:
			missing = append(missing, c.name)
		}
	}
	if missing != nil {
		return "", "", fmt.Errorf("%s takes no row without a value for %s: name what they get, or give them a default: %w",
			t.name, strings.Join(missing, ", "), semel.ErrSchema)
	}
	return strings.Join(names, ", "), strings.Join(texts, ", "), nil
}

// inspect asks for the unique key that judges, for the rights, and whether a
// crash of the server would take rows away: what other code applied before would
// be applied again.
func (s *Store) inspect(ctx context.Context, p *adoption) error {
	key := p.keyed()
	slices.Sort(key)
	var keyed, allowed bool
	if err := s.db.QueryRowContext(ctx, s.postgres.OldKey, p.Table, strings.Join(key, "\n")).Scan(&keyed, &allowed); err != nil {
		return err
	}
	if !keyed {
		columns := strings.Join(key, ", ")
		return fmt.Errorf("%s has no unique key of exactly the columns %s, so nothing there would refuse a second row: "+
			"create unique index concurrently on %s (%s), or name the columns that its key has: %w", p.table.name, columns, p.table.name, columns, semel.ErrSchema)
	}
	if !allowed {
		return fmt.Errorf("the role may not select, insert and delete in %s: grant it: %w", p.table.name, semel.ErrSchema)
	}
	var remedy string
	if err := s.db.QueryRowContext(ctx, s.postgres.OldUnlogged, p.Table).Scan(&remedy); err != nil {
		return err
	}
	if remedy != "" {
		return fmt.Errorf("%s is not kept through a crash of the server: it is unlogged, and if the server crashed since, its rows are gone: %w: %s",
			p.table.name, semel.ErrSchema, remedy)
	}
	return nil
}

// claim notes which consumer has the table, so that no other takes rows of one
// for its own.
func (s *Store) claim(ctx context.Context, p *adoption) error {
	key := "adopted " + p.owner
	owner, err := s.owner(ctx, key)
	if errors.Is(err, sql.ErrNoRows) {
		if _, err := s.db.ExecContext(ctx, s.sql.Setup, key, p.Consumer); err != nil {
			return err
		}
		owner, err = s.owner(ctx, key)
	}
	switch {
	case err != nil:
		return err
	case owner != p.Consumer && p.ConsumerColumn == "":
		return fmt.Errorf("consumer %s has adopted %s, which has no column for the consumer: what one of them applied the other would skip; "+
			"use another table, or a column for the consumer that is part of the key; if %s is gone, delete the row %q of %ssetup: %w",
			owner, p.table.name, owner, key, s.prefix, semel.ErrSchema)
	case owner != p.Consumer:
		return fmt.Errorf("consumer %s has adopted %s with the same value of %s: what one of them applied the other would skip; "+
			"give each its own; if %s is gone, delete the row %q of %ssetup: %w",
			owner, p.table.name, p.ConsumerColumn, owner, key, s.prefix, semel.ErrSchema)
	}
	return nil
}

func (s *Store) owner(ctx context.Context, key string) (consumer string, err error) {
	err = s.db.QueryRowContext(ctx, s.postgres.SetupName, key).Scan(&consumer)
	return consumer, err
}

// admit refuses what the rows of an adopted table do not tell apart.
func (p *adoption) admit(k scope) error {
	switch {
	case k.consumer != p.Consumer:
		return fmt.Errorf("this store marks in %s for consumer %s: open another for %s", p.table.name, p.Consumer, k.consumer)
	case k.generation != 0:
		return fmt.Errorf("%s has no column for a generation: %w", p.table.name, semel.ErrUnsupported)
	case p.source == nil && k.source != p.Source && !strings.HasPrefix(k.source, "semel:"):
		return fmt.Errorf("%s has no column for the source and was adopted for %q, and a message has the source %q: "+
			"give the identity a constant source, or the table a column that is part of its key", p.table.name, p.Source, legible.Printable(k.source))
	}
	return nil
}
