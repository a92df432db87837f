package database

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/adoption"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// Dated are the options of sqlstore.Store.Dated.
type Dated struct {
	Consumer string
	IDTime   identity.IDTime
	Back     int
	Move     bool
}

// MostBack is the largest allowed Dated.Back.
const MostBack = 3650

// View returns a database whose statements use the table with daily partitions instead of the table that all consumers
// share.
func (d *Days) View() (*DB, error) {
	s := d.DB
	names := strings.NewReplacer("{prefix}markers", s.Names.Replace("{prefix}"+d.name()), "{prefix}", s.Names.Replace("{prefix}"), "{name}", s.Prefix)
	own, err := openAs(s.Pool, s.Dialect, Options{Prefix: s.Prefix}, names)
	if err != nil {
		return nil, err
	}
	own.Names, own.Crypt, own.Guards, own.Level, own.writers, own.Foreign, own.Days = s.Names, s.Crypt, s.Guards, s.Level, s.writers, d, d
	own.Postgres = own.Postgres.WithDays(&d.SQL, s.Postgres)
	own.Postgres.Look = strings.Replace(own.Postgres.Look, "{owned}", own.Postgres.Owned, 1)
	own.SQL = &own.Postgres.Statements
	// Partitions are dropped as a whole. Only the markers in the table with the suffix _aside are removed row by row.
	table := s.Names.Replace("{prefix}" + d.name())
	for _, text := range []*string{&own.Postgres.Place, &own.Postgres.Part, &own.Postgres.ReapRows} {
		*text = strings.ReplaceAll(*text, table, table+"_aside")
	}
	own.Postgres.Reap = strings.Replace(own.Postgres.Reap, "{part}", own.Postgres.Part, 1)
	return own, nil
}

// Days is a table with daily partitions for the markers of one consumer.
type Days struct {
	Dated
	DB     *DB // the database that all consumers share
	Number int64
	// Moving is true if the markers were in the table that all consumers share when the store was opened. A move may
	// have ended after the opening. See package daily.
	Moving bool
	SQL    sqlform.Dated
}

// name returns the name of the table without the prefix.
func (d *Days) name() string { return "markers_" + strconv.FormatInt(d.Number, 10) }

// Ceilings contains, for each kind of ids with a time, a key that is above all ids of this kind.
var Ceilings = map[identity.IDTime]string{identity.UUIDv7: `\x02`, identity.ULID: `\x0038`, identity.Snowflake: `\x003a`}

// Load reads the statements and inserts the name of the table.
func (d *Days) Load() error { return d.Fill(&d.SQL, "dated.sql", "") }

// Fill reads a file of statements and inserts the name of the table, followed by a suffix (the parameter behind).
func (d *Days) Fill(statements any, file, behind string) error {
	table := d.DB.Names.Replace("{prefix}" + d.name() + behind)
	names := strings.NewReplacer("{markers}", table, "{name}", d.DB.Prefix+d.name(), "{number}", strconv.FormatInt(d.Number, 10),
		"{kind}", d.IDTime.String(), "{ceiling}", Ceilings[d.IDTime], "{prefix}", d.DB.Names.Replace("{prefix}"))
	texts, err := d.DB.Dialect.Load(names, file)
	if err != nil {
		return err
	}
	return sqlform.Fill(statements, texts)
}

// Admit implements Foreign.
func (d *Days) Admit(consumer, _ string, generation int64) error {
	if generation != 0 {
		return fmt.Errorf("the markers of consumer %q are kept by day, which supports only one derivation of ids: %w", consumer, semel.ErrUnsupported)
	}
	if consumer != d.Consumer {
		return fmt.Errorf("consumer %q cannot use the markers by day of consumer %q: %w", consumer, d.Consumer, semel.ErrState)
	}
	return nil
}

// Fit implements Foreign. Fit returns the spelling of an id in which ids sort by time.
func (d *Days) Fit(_, id string) (string, error) {
	spelled := strings.ToLower(id)
	if d.IDTime == identity.ULID {
		spelled = strings.ToUpper(id)
	}
	if _, ok := d.IDTime.Of(spelled); !ok {
		return "", fmt.Errorf("it is not a %v, whose time determines the day of its marker", d.IDTime)
	}
	if d.Moving && spelled != id { // for processes with the shared table, this spelling is another id
		return "", fmt.Errorf("it differs in case from %q, which is not supported while the consumer moves to days", spelled)
	}
	return spelled, nil
}

// Check implements Foreign.
func (d *Days) Check(ctx context.Context) error { return d.DB.Faults(ctx, d.SQL.Lint) }

// Missing implements Foreign.
func (d *Days) Missing(err error) error { return err }

// NoPartition reports whether a marker could not be written because its daily partition was dropped after the
// range of partitions was read. A retry reads the range again.
func (s *DB) NoPartition(err error) bool {
	return s.Days != nil && SQLState(err) == "23514" && fieldOf(err, "Routine") == "ExecFindPartition"
}

// Adopt opens a store that also writes markers to a user's own table.
func (s *DB) Adopt(ctx context.Context, a adoption.Options) (*DB, error) {
	if s.Postgres == nil {
		return nil, fmt.Errorf("sqlstore: a %s table cannot be adopted, seed its ids instead: %w", s.Dialect.Name, semel.ErrUnsupported)
	}
	if a.Consumer == "" || strings.HasPrefix(a.Source, "semel:") {
		return nil, errors.New("sqlstore: adopting needs the name of a consumer, and a source that does not begin with \"semel:\"")
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

// rehearse lets the database plan the statement that writes markers, so that a value of the wrong type or a missing
// privilege is found before the first message.
func (s *DB) rehearse(ctx context.Context, table string) error {
	const none = "{}"
	_, err := s.Pool.ExecContext(ctx, "explain "+s.SQL.Mark, none, none, none, none, none, none)
	if err != nil && s.Classify(err) == store.ClassPermanent {
		err = fmt.Errorf("%w: correct it: %w", err, semel.ErrSchema)
	}
	if err != nil {
		return fmt.Errorf("sqlstore: adopting %s: the database would reject the markers: %w", table, err)
	}
	return nil
}
