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

// Foreign checks a table of markers other than the table that all consumers share: a user's own table (see
// internal/adoption), or a table with daily partitions.
type Foreign interface {
	// Admit returns an error if the table cannot contain markers of a given consumer, source and generation.
	Admit(consumer, source string, generation int64) error
	// Fit returns the id as the table stores it (for example in lower case), or an error if the id does not fit the
	// table.
	Fit(source, id string) (string, error)
	// Check returns an error if the definition of the table is not as required.
	Check(ctx context.Context) error
	// Missing adds the likely cause to an error about markers that were neither written nor found.
	Missing(err error) error
}

// NoForeign is the Foreign of a store that uses only the table of markers that all consumers share.
type NoForeign struct{}

func (NoForeign) Admit(string, string, int64) error { return nil }
func (NoForeign) Fit(_, id string) (string, error)  { return id, nil }
func (NoForeign) Check(context.Context) error       { return nil }
func (NoForeign) Missing(error) error               { return nil }

// MarksAlone reports whether the store's statements use only Semel's own tables. If the result is true, advice about
// Semel's tables is valid for the errors of the store's statements.
func (s *DB) MarksAlone() bool { return s.Foreign == NoForeign{} || s.Days != nil }

// Scope is a consumer, source and generation. Semel's tables contain a number for each Scope.
type Scope struct {
	Consumer, Source string
	Generation       int64
}

// Args returns the arguments for statements that look up a scope (consumer, source and generation).
func (s Scope) Args() []any { return []any{[]byte(s.Consumer), []byte(s.Source), s.Generation} }

// mostScopes is the largest size of the cache of scopes (consumer, source and generation). When the cache is full, it
// is cleared.
const mostScopes = 10_000

// Remembered returns the cached numbers of scopes (consumer, source and generation), and 0 for scopes that are not in
// the cache.
func (s *DB) Remembered(consumer string, sources []string, generation int64) []int64 {
	numbers := make([]int64, len(sources))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, source := range sources {
		numbers[i] = s.scopes[Scope{consumer, source, generation}]
	}
	return numbers
}

// Remember adds the numbers of scopes (consumer, source and generation) to the cache.
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

// forgetScopes clears the cache after an outage, because the database may have been restored; see also the
// cache of package consumer.
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

// DB is a database with the statements of its dialect. If Days is set, the statements use the table with daily
// partitions instead of the table that all consumers share.
type DB struct {
	Pool    *sql.DB
	Dialect *Dialect
	Prefix  string
	Names   *strings.Replacer
	SQL     *sqlform.Statements
	// The statements of the dialect, which include SQL. The field of the other dialect is nil.
	Postgres *sqlform.Postgres
	SQLite   *sqlform.SQLite
	Crypt    sqlform.Crypt // encrypts messages
	Guards   bool
	Alone    bool               // true if each batch has one message
	Level    sql.IsolationLevel // isolation level of batches
	writers  chan struct{}      // one element for each transaction that may write; nil without a limit
	Foreign  Foreign            // checks the markers' table if it is not the shared table
	Days     *Days              // the table with daily partitions; nil if the shared table has the markers
	File     *openedFile        // nil unless the database is a file of this process

	outdated atomic.Int64 // number of errors because of outdated plans
	Prepared preparedList

	mu     sync.Mutex
	scopes map[Scope]int64 // guarded by mu; see Remember
}

func open(db *sql.DB, d *Dialect, o Options) (*DB, error) {
	if o.Prefix == "" {
		o.Prefix = "semel_"
	}
	names, err := d.nameReplacer(o)
	if err != nil {
		return nil, err
	}
	return openAs(db, d, o, names)
}

// openAs opens a store whose tables have the given names.
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
