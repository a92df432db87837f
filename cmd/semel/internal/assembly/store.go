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

// tables are Semel's own in a database, whatever its kind.
type tables interface {
	// OpenSchemas warns of schemas in which others may create objects.
	OpenSchemas(ctx context.Context) ([]string, error)
	// LackingRights warns of rights in Semel's tables that the role lacks.
	LackingRights(ctx context.Context) ([]string, error)
	// Grants are the GRANT statements that a role needs, also in tables that were adopted.
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

// database is what differs between kinds of databases.
type database interface {
	// place names the database in errors, without a secret.
	place() string
	// explain makes an error of the database fit for an operator: one line,
	// with what to do.
	explain(err error) error
	// try asks the database to prepare the statements of the consumer's handler
	// as they will be sent; see sqlhandler.Handler.Try.
	try(ctx context.Context, h *sqlhandler.Handler, c *policy.Consumer) (statement int, err error)
	consumer(ctx context.Context, h handlers, c *policy.Consumer, config consumer.Config) (Consumer, error)
	// leased makes a consumer that calls out under claims of the database's inbox.
	leased(call caller, config consumer.Config) (Consumer, error)
	// answered makes one whose answers name effects, which the database takes.
	answered(ask asker, effects *sqlhandler.Effects, config consumer.Config) (Consumer, error)
	// Notify tells the processes that listen that something of a consumer is due.
	Notify(ctx context.Context, consumer string) error
	// violates reports whether an error is the violation of the constraint.
	violates(constraint string) func(error) bool
	// hasUnique reports whether there is a constraint of this name that violates
	// can meet.
	hasUnique(ctx context.Context, constraint string) (bool, error)
	// Query calls each for every row of a query that writes nothing.
	Query(ctx context.Context, query string, each func(*sql.Rows) error) error
	// Connections tells of those of this process.
	Connections() (used, idle, most int)
	Close() error
}

// opening says how a store is opened.
type opening struct {
	// create: the database may be made if it is missing.
	create bool
	// patient: a person waits, and has no second try: who writes all the time is let
	// write for long.
	patient bool
	// cipher encrypts what is kept; nil: nothing does.
	cipher store.Cipher
	// encryptedSince is from when on plain text is refused; zero: it is not.
	encryptedSince time.Time
	// connections is how many the consumers of the store need at most.
	connections int
	// log gets what is found out about the database; nil: nobody wants it.
	log *slog.Logger
}

func openStore(s *policy.Store, o opening) (*Store, error) {
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

func openKind(s *policy.Store, o opening) (tables, database, error) {
	if s.Postgres != nil {
		return openPostgres(s.Postgres, o)
	}
	return openSQLite(s.SQLite, o)
}

// Name is the store's in the policy.
func (s *Store) Name() string { return s.policy.Name }

// OnServer reports whether a server has the store's database, and not this process.
func (s *Store) OnServer() bool { return s.policy.Postgres != nil }

// Lines are those of the store; nil if it keeps none.
func (s *Store) Lines() admin.Lines {
	lines, _ := s.tables.(admin.Lines)
	return lines
}

// Derivations are what the store remembers of identities.
func (s *Store) Derivations() admin.Derivations { return s.tables }

// Streams are those of the store; nil if it keeps none.
func (s *Store) Streams() admin.Streams {
	streams, _ := s.tables.(admin.Streams)
	return streams
}

// closeWithin is how long a store may take to close. Nothing is lost by ending
// it sooner: what was committed is, and the server rolls back the rest.
const closeWithin = 5 * time.Second

func (s *Store) closeWithin(most time.Duration) error {
	var closing worker.Group
	ended := make(chan error, 1)
	closing.Go(func() { ended <- s.Close() })
	if !closing.WaitFor(most) {
		return fmt.Errorf("store %s: %s: a connection did not end within %v, because the server does not answer; it ends with the process, and what was not settled comes again", s.Name(), s.place(), most)
	}
	return <-ended
}

// Failed says which store an error is of, and what to do; nil stays nil.
func (s *Store) Failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store %s: %s: %w", s.Name(), s.place(), s.explain(err))
}

// lacksMigration reports whether migrating is what a store needs.
func (s *Store) lacksMigration(ctx context.Context) bool {
	all, err := s.Status(ctx)
	return err == nil && slices.ContainsFunc(all, func(m sqlstore.Migration) bool { return m.SQL != "" && m.AppliedAt.IsZero() })
}

// remedied is an error on one line with what to do about it.
type remedied struct {
	text string
	err  error
}

func (e *remedied) Error() string { return e.text }
func (e *remedied) Unwrap() error { return e.err }

var errNoDatabase = errors.New("there is no database")

// preparesNames marks connections that prepare named statements.
const preparesNames = "semel: prepares named statements"

// withoutNames has the connections of a pool prepare no named statements once a pooler stands
// between this process and the server. A pooler in transaction mode gives each transaction
// another connection of the server, which does not know the names, or has others of them.
//
// Each new connection finds out before it is used, since a pooler may be put in front during a
// run: a pooler tells each client a process id of its own, and not the one of the server's
// process. The pool then replaces all connections that prepare named statements. No statement
// fails for that, so no message is charged with an attempt.
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
			log.Info("a pooler stands before the database: statements are sent without names (default_query_exec_mode=exec); "+
				"set default_query_exec_mode in the url to choose", "host", c.Config().Host, "port", c.Config().Port)
		}
		return err
	}
	config.PrepareConn = func(_ context.Context, c *pgx.Conn) (bool, error) {
		return !pooled.Load() || c.PgConn().CustomData()[preparesNames] == nil, nil
	}
}

// throughPooler reports whether the process that answers has another id than the one that the
// connection was told. It sends no named statement.
func throughPooler(ctx context.Context, conn *pgconn.PgConn) (bool, error) {
	results, err := conn.Exec(ctx, "select pg_catalog.pg_backend_pid() = "+strconv.Itoa(int(int32(conn.PID())))+"::int4").ReadAll()
	if err != nil || len(results) != 1 || len(results[0].Rows) != 1 {
		return false, err
	}
	return string(results[0].Rows[0][0]) != "t", nil
}

// plainHost is a remote host of the connection string to which the client may speak without
// TLS, as it does where sslmode is not set and the server offers none; empty if there is none.
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
