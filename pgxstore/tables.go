package pgxstore

import (
	"context"
	"io"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// inherited contains the methods that the stores take from sqlstore without a change.
type inherited interface {
	store.Inbox
	store.Leases
	store.Reaper
	keystore.Store
	source.PositionStore
	laneoffset.Store
	admin.Auditor
	admin.Controls
	admin.Derivations
	admin.Editor
	admin.Emitter
	admin.Eraser
	admin.Generations
	admin.Interner
	admin.Lines
	admin.MarkerReader
	admin.Previewer
	admin.Recorder
	admin.Replays
	admin.RequestStore
	admin.Requeuer
	admin.Resolver
	admin.Streams
	Scope(ctx context.Context, consumer, source string, generation int64) (int64, error)
	IsStoreFault(err error) bool
	Results(ctx context.Context, of []admin.ResultOf) ([][]byte, error)
}

// tables gives access to Semel's tables in the pool's database. sqlstore implements the operations outside of batches.
type tables struct {
	inherited
	inner    *sqlstore.Store
	exchange *exchange
}

// Migrate applies the missing migrations, each in its own transaction, and returns their names. Several processes may
// call Migrate at the same time. After an error, the returned migrations are applied, and the other migrations are not.
// Before it creates anything, Migrate checks that the tables can work in this database, and that the schema has no
// later major version; if not, the error wraps semel.ErrSchema. Migrate does not inspect existing tables: see Check.
func (t *tables) Migrate(ctx context.Context) (applied []string, err error) {
	return t.inner.Migrate(ctx)
}

// Status returns every migration that this release knows or the database has, in order. If a migration in the database
// has other content, or belongs to a later major version, the error wraps semel.ErrSchema. For a later major version,
// Status returns the migrations together with the error.
func (t *tables) Status(ctx context.Context) ([]sqlstore.Migration, error) {
	return t.inner.Status(ctx)
}

// Print writes the SQL of all migrations, for teams that apply the SQL with another tool. The SQL also writes
// the records of the migrations. Print does not access the database.
func (t *tables) Print(w io.Writer) error { return t.inner.Print(w) }

// Check implements admin.SchemaChecker: it reports whether the tables fit this release and still have
// everything that exactly-once processing needs. The error names every fault and its remedy, and wraps
// semel.ErrSchema. Check changes nothing.
func (t *tables) Check(ctx context.Context) error { return t.inner.Check(ctx) }

// Setup runs the user's statements once, in one transaction with a record of their hash. The result ran is true if this
// call ran the statements. The parameter name is only for people. For the state after an error, see
// sqlstore.Store.Setup.
func (t *tables) Setup(ctx context.Context, name, statements string) (ran bool, err error) {
	return t.inner.Setup(ctx, name, statements)
}

// Seed writes markers for the ids in another table, so that each of these ids counts as applied. Use Seed if the
// consumer replaces other code. After an error or the end of ctx, the markers that were written so far stay, and the
// next call continues after them; see sqlstore.Store.Seed.
func (t *tables) Seed(ctx context.Context, o sqlstore.Seed) (sqlstore.Seeded, error) {
	return t.inner.Seed(ctx, o)
}

// Rows implements store.Inbox: it returns inbox rows, ordered by number. A limit of 0 means 1,000.
func (t *tables) Rows(ctx context.Context, f store.RowFilter) ([]store.StoredRow, error) {
	return t.inner.Rows(ctx, f)
}

// Discard implements store.Inbox: it closes rows and their markers, and writes an audit record for each row.
func (t *tables) Discard(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return t.inner.Discard(ctx, a, rows...)
}

// Requeue implements admin.Requeuer: it schedules rows to run now.
func (t *tables) Requeue(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return t.inner.Requeue(ctx, a, rows...)
}

// PrintReaper writes SQL for a scheduler in the database: it creates a procedure that removes old data, and calls the
// procedure for each given consumer. PrintReaper does not access the database.
func (t *tables) PrintReaper(w io.Writer, consumers []string) error {
	return t.inner.PrintReaper(w, consumers)
}

// crypt returns the encryption of the store.
func (t *tables) crypt() sqlform.Crypt { return sqlstore.Crypt(t.inner) }
