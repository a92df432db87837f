package assembly

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/encryption"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// Store is an opened store.
type Store struct {
	tables
	database
	policy *policy.Store
}

// tables has the methods for Semel's own tables. SQLite and PostgreSQL implement the methods of tables in the
// same way.
type tables interface {
	// OpenSchemas returns warnings about schemas in which other database roles may create objects.
	OpenSchemas(ctx context.Context) ([]string, error)
	// LackingRights returns warnings about privileges on Semel's tables that the database role lacks.
	LackingRights(ctx context.Context) ([]string, error)
	// Grants returns the GRANT statements for a role. The slice adopted has the user's own deduplication tables;
	// Grants adds statements for these tables.
	Grants(ctx context.Context, role string, adopted ...string) ([]string, error)
	store.Inbox
	admin.Requeuer
	admin.Editor
	admin.Resolver
	admin.Recorder
	admin.Auditor
	admin.Eraser
	admin.MarkerReader
	admin.SchemaChecker
	store.Reaper
	PrintReaper(w io.Writer, consumers []string) error
	BeginMove(ctx context.Context, o sqlstore.Dated) error
	EndMove(ctx context.Context, consumer string) (sqlstore.Moved, error)
	admin.Controls
	admin.Derivations
	admin.Replays
	keystore.Store
	admin.Generations
	source.PositionStore
	Known(ctx context.Context, consumer, id string) ([]sqlstore.Known, error)
	RowsOf(ctx context.Context, consumer, id string, bodies bool) ([]store.StoredRow, error)
	Caused(ctx context.Context, by semel.Key, after int64) ([]store.StoredRow, error)
	Erased(ctx context.Context, key semel.Key) ([]store.Act, error)
	LeasedKey(ctx context.Context, key semel.Key) (sqlstore.KnownKey, bool, error)
	Clock(ctx context.Context) (time.Time, error)
	Upkeep(ctx context.Context, consumer string) (sqlstore.Upkeep, error)
	Denials(ctx context.Context, consumer string, after int64, most int) (sqlstore.Looked, error)
	Status(ctx context.Context) ([]sqlstore.Migration, error)
	Migrate(ctx context.Context) (applied []string, err error)
	Print(w io.Writer) error
	Setup(ctx context.Context, name, statements string) (ran bool, err error)
	Seed(ctx context.Context, o sqlstore.Seed) (sqlstore.Seeded, error)
	SampleRows(ctx context.Context, state store.RowState) (sqlstore.Sampled, error)
	SampleReaping(ctx context.Context) (map[string]sqlstore.SampledReaping, error)
	SampleReplays(ctx context.Context) (map[string]int64, error)
	SampleTables(ctx context.Context) (map[string]sqlstore.SampledTable, error)
	SampleOutcomes(ctx context.Context) (map[store.Outcome]int64, error)
}

// database has the methods that SQLite and PostgreSQL implement differently.
type database interface {
	// describe describes the database in errors, without secrets.
	describe() string
	// explain returns a database error as one line with a remedy, for operators.
	explain(err error) error
	// try lets the database prepare the statements of the consumer's handler, in the way in which they will
	// be sent; see sqlhandler.Handler.Try.
	try(ctx context.Context, h *sqlhandler.Handler, c *policy.Consumer) (statement int, err error)
	consumer(ctx context.Context, h handlers, c *policy.Consumer, config consumer.Config) (Consumer, error)
	// newLeasedConsumer creates a consumer that calls another system under claims of the database's inbox.
	newLeasedConsumer(call caller, config consumer.Config) (Consumer, error)
	// newEffectsConsumer creates a consumer for an endpoint whose responses name effects in the database.
	newEffectsConsumer(ask asker, effects *sqlhandler.Effects, config consumer.Config) (Consumer, error)
	// Notify wakes processes that wait for due rows of the consumer.
	Notify(ctx context.Context, consumer string) error
	// violationCheck returns a function that reports whether an error is a violation of the constraint.
	violationCheck(constraint string) func(error) bool
	// hasUnique reports whether a unique constraint of this name exists. violationCheck recognises only a
	// constraint that exists.
	hasUnique(ctx context.Context, constraint string) (bool, error)
	// Query runs a read-only query and calls the function each for every row.
	Query(ctx context.Context, query string, each func(*sql.Rows) error) error
	// Connections returns the number of open connections of this process.
	Connections() (used, idle, most int)
	Close() error
}

type openOptions struct {
	// create allows the store to create a missing database.
	create bool
	// With the field patient, the store waits longer for writers that never pause. The field is set for commands
	// that a person runs, because nothing retries a command of a person.
	patient bool
	// cipher encrypts stored payloads; nil without encryption.
	cipher store.Cipher
	// encryptedSince is the time from which rows in plain text are rejected; zero if such rows are always
	// accepted.
	encryptedSince time.Time
	// connections is the number of connections that the store's consumers need.
	connections int
	// log receives warnings about the database; nil to log nothing.
	log *slog.Logger
}

func openStore(s *policy.Store, o openOptions) (*Store, error) {
	if e := s.Encryption; e != nil {
		c, err := encryption.New(e.Key, e.PreviousKeys...)
		if err != nil {
			return nil, fmt.Errorf("store %s: %w", s.Name, err)
		}
		o.cipher, o.encryptedSince = c, e.RequiredSince
	}
	tables, database, err := openKind(s, o)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", s.Name, err)
	}
	return &Store{tables: tables, database: database, policy: s}, nil
}

func openKind(s *policy.Store, o openOptions) (tables, database, error) {
	if s.Postgres != nil {
		return openPostgres(s.Postgres, o)
	}
	return openSQLite(s.SQLite, o)
}

// Name returns the name of the store in the policy.
func (s *Store) Name() string { return s.policy.Name }

// OnServer reports whether the database runs in a server, outside this process.
func (s *Store) OnServer() bool { return s.policy.Postgres != nil }

// Lines returns the part of the store that unblocks rows which wait behind other rows, or nil if the store
// has no such part.
func (s *Store) Lines() admin.Lines {
	lines, _ := s.tables.(admin.Lines)
	return lines
}

// Derivations returns the store's records of the selectors with which ids were found.
func (s *Store) Derivations() admin.Derivations { return s.tables }

// Streams returns the streams of the store, or nil if the store has none.
func (s *Store) Streams() admin.Streams {
	streams, _ := s.tables.(admin.Streams)
	return streams
}

// closeWithin is the maximum time for closing a store. If closing a store takes longer, no data is lost:
// committed transactions stay, and the server rolls back all other transactions.
const closeWithin = 5 * time.Second

func (s *Store) closeWithin(most time.Duration) error {
	var closing worker.Group
	ended := make(chan error, 1)
	closing.Go(func() { ended <- s.Close() })
	if !closing.WaitFor(most) {
		return fmt.Errorf("store %s: %s: a connection did not close within %v, because the server does not answer; it ends with the process, and unacked messages are delivered again", s.Name(), s.describe(), most)
	}
	return <-ended
}

// Failed adds the name of the store and a remedy to an error. Failed returns nil for nil.
func (s *Store) Failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store %s: %s: %w", s.Name(), s.describe(), s.explain(err))
}

func (s *Store) lacksMigration(ctx context.Context) bool {
	all, err := s.Status(ctx)
	return err == nil && slices.ContainsFunc(all, func(m sqlstore.Migration) bool { return m.SQL != "" && m.AppliedAt.IsZero() })
}

// remedyError is an error with a remedy, as one line.
type remedyError struct {
	text string
	err  error
}

func (e *remedyError) Error() string { return e.text }
func (e *remedyError) Unwrap() error { return e.err }

var errNoDatabase = errors.New("there is no database")

// preparesNames marks connections that use named prepared statements.
const preparesNames = "semel: prepares named statements"

// withoutNames makes a pool stop using named prepared statements if the pool connects through a pooler such
// as PgBouncer. In transaction mode, a pooler can run each transaction on another server connection. The
// other server connection may lack the named statement, or have another statement with the same name.
//
// The pool checks each new connection, because an operator may add a pooler during a run. The check compares
// process ids: behind a pooler, the id that the client received differs from the id of the server process.
// When a pooler is found, the pool replaces all connections that use named statements. No statement fails
// because connections are replaced, so replacing connections does not count as an attempt of a message.
func withoutNames(config *pgxpool.Config, log *slog.Logger) {
	var pooled atomic.Bool
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		if pooled.Load() {
			c.DefaultQueryExecMode = pgx.QueryExecModeExec
		}
		return nil
	}
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		if c.Config().DefaultQueryExecMode == pgx.QueryExecModeExec {
			return nil
		}
		c.PgConn().CustomData()[preparesNames] = true
		through, err := throughPooler(ctx, c.PgConn())
		if err == nil && through && pooled.CompareAndSwap(false, true) && log != nil {
			log.Info("the database is behind a pooler: statements are sent without names (default_query_exec_mode=exec); "+
				"set default_query_exec_mode in the url to choose", "host", c.Config().Host, "port", c.Config().Port)
		}
		return err
	}
	config.PrepareConn = func(_ context.Context, c *pgx.Conn) (bool, error) {
		return !pooled.Load() || c.PgConn().CustomData()[preparesNames] == nil, nil
	}
}

// throughPooler reports whether the server's process id differs from the id that was sent when the
// connection started. throughPooler itself uses no named statement.
func throughPooler(ctx context.Context, conn *pgconn.PgConn) (bool, error) {
	results, err := conn.Exec(ctx, "select pg_catalog.pg_backend_pid() = "+strconv.Itoa(int(int32(conn.PID())))+"::int4").ReadAll()
	if err != nil || len(results) != 1 || len(results[0].Rows) != 1 {
		return false, err
	}
	return string(results[0].Rows[0][0]) != "t", nil
}

// plainHost returns a remote host to which the client may connect without encryption, or "" if there is none.
// If sslmode is not set, the client connects without encryption to servers without TLS.
func plainHost(c *pgconn.Config) string {
	if c.TLSConfig == nil && remote(c.Host) {
		return c.Host
	}
	for _, f := range c.Fallbacks {
		if f.TLSConfig == nil && remote(f.Host) {
			return f.Host
		}
	}
	return ""
}

func remote(host string) bool {
	ip := net.ParseIP(host)
	return host != "localhost" && !strings.HasPrefix(host, "/") && (ip == nil || !ip.IsLoopback())
}
