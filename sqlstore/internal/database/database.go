// Package database opens a database with the statements of its dialect, runs transactions in it and
// classifies its errors.
package database

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// Foreign checks the table of a store that writes its markers not only to Semel's common table.
// The table is one of the user (see internal/adoption), or a table with daily partitions.
type Foreign interface {
	// Admit returns an error if the rows of the table cannot distinguish a scope from others.
	Admit(consumer, source string, generation int64) error
	// Fit returns the id in the spelling of the table, or an error if the table cannot hold
	// the id.
	Fit(source, id string) (string, error)
	// Check returns an error if the table is not as required.
	Check(ctx context.Context) error
	// Missing adds the likely cause to an error about marks that were neither written nor
	// found.
	Missing(err error) error
}

// NoForeign is the Foreign of a store that uses only Semel's common table.
type NoForeign struct{}

func (NoForeign) Admit(string, string, int64) error { return nil }
func (NoForeign) Fit(_, id string) (string, error)  { return id, nil }
func (NoForeign) Check(context.Context) error       { return nil }
func (NoForeign) Missing(error) error               { return nil }

// MarksAlone reports whether the store's statements use only Semel's tables. If so, advice about
// Semel's tables applies to the errors of these statements.
func (s *DB) MarksAlone() bool { return s.Foreign == NoForeign{} || s.Days != nil }

// Scope is the key of a scope's number.
type Scope struct {
	Consumer, Source string
	Generation       int64
}

// Args returns the arguments of statements that look up a scope.
func (s Scope) Args() []any { return []any{[]byte(s.Consumer), []byte(s.Source), s.Generation} }

// mostScopes limits the cache of scopes; a full cache is cleared.
const mostScopes = 10_000

// Remembered returns the numbers of scopes that the cache has, and 0 for the others.
func (s *DB) Remembered(consumer string, sources []string, generation int64) []int64 {
	numbers := make([]int64, len(sources))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, source := range sources {
		numbers[i] = s.scopes[Scope{consumer, source, generation}]
	}
	return numbers
}

// Remember stores the numbers of scopes in the cache.
func (s *DB) Remember(consumer string, sources []string, generation int64, numbers []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.scopes)+len(sources) > mostScopes {
		clear(s.scopes)
	}
	for i, source := range sources[:min(len(sources), mostScopes)] {
		s.scopes[Scope{consumer, source, generation}] = numbers[i]
	}
}

// forgetScopes clears the cache after an outage: see the scopes of package consumer.
func (s *DB) forgetScopes() {
	s.mu.Lock()
	clear(s.scopes)
	s.mu.Unlock()
}

// Options are the options of package sqlstore.
type Options struct {
	Prefix, Schema string
	Isolation      sql.IsolationLevel
	Cipher         store.Cipher
	EncryptedSince time.Time
	Code           func(err error) (code int, ok bool)
}

// DB is a database with the statements of its dialect. If Days is set, the statements use the
// name of the table with daily partitions.
type DB struct {
	Pool    *sql.DB
	Dialect *Dialect
	Prefix  string
	Names   *strings.Replacer
	SQL     *sqlform.Statements
	// The dialect's own statements, which include SQL; nil for the other dialect.
	Postgres *sqlform.Postgres
	SQLite   *sqlform.SQLite
	Crypt    sqlform.Crypt // encrypts messages
	Guards   bool
	Alone    bool               // batches have one message
	Level    sql.IsolationLevel // the isolation level of batches
	writers  chan struct{}      // one slot for each writer; nil if their number is not limited
	Foreign  Foreign            // the table of markers besides the common one
	Days     *Days              // the table with daily partitions; nil for the common table
	File     *openedFile        // nil unless the database is a file of this process

	outdated atomic.Int64 // counts errors about outdated plans
	Prepared prepared

	mu     sync.Mutex
	scopes map[Scope]int64 // guarded by mu; see Remember
}

func open(db *sql.DB, d *Dialect, o Options) (*DB, error) {
	if o.Prefix == "" {
		o.Prefix = "semel_"
	}
	names, err := d.names(o)
	if err != nil {
		return nil, err
	}
	return openAs(db, d, o, names)
}

// openAs opens a store with these table names.
func openAs(db *sql.DB, d *Dialect, o Options, names *strings.Replacer) (*DB, error) {
	texts, err := d.Load(names, "marks.sql", "rows.sql", "edits.sql", "audit.sql", "claims.sql", "steps.sql", "results.sql", "erase.sql", "streams.sql", "lines.sql", "scopes.sql", "retention.sql", "controls.sql", "keys.sql", "derivations.sql", "generations.sql", "replays.sql", "sample.sql", "schema.sql", "lint.sql", "tables.sql")
	if err != nil {
		return nil, err
	}
	s := &DB{Pool: db, Dialect: d, Prefix: o.Prefix, Names: names, Crypt: sqlform.NewCrypt(o.Cipher, o.EncryptedSince), scopes: map[Scope]int64{}, Foreign: NoForeign{}}
	if err := d.fill(s, texts); err != nil {
		return nil, fmt.Errorf("sqlstore: the SQL of %s: %w", d.Name, err)
	}
	s.fillParts()
	if d.Writers > 0 {
		s.writers = make(chan struct{}, d.Writers)
	}
	return s, nil
}
