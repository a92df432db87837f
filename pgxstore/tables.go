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

// inherited are the methods that a store has from sqlstore as they are.
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

// tables are Semel's tables in the pool's database, with what is done on them
// seldom and outside of batches: sqlstore does it.
type tables struct {
	inherited
	inner    *sqlstore.Store
	exchange *exchange
}

// Migrate applies the migrations that are missing, each in a transaction, and
// returns their names. Several processes may call it at once. After an error
// the migrations it names are applied and the others are not. A database in which
// the tables would not do what they are for is refused before anything is made;
// and so is a schema of a later major version; the error wraps semel.ErrSchema.
// Migrate does not look at tables that are there: see Check.
func (t *tables) Migrate(ctx context.Context) (applied []string, err error) {
	return t.inner.Migrate(ctx)
}

// Status returns every migration that this release knows or the database has, in
// order. One that was applied with another content, or is of a later major version,
// is an error that wraps semel.ErrSchema; of the latter the migrations are returned
// all the same.
func (t *tables) Status(ctx context.Context) ([]sqlstore.Migration, error) {
	return t.inner.Status(ctx)
}

// Print writes the SQL of all migrations, with what records them, for teams that
// apply it with a tool of their own. It asks the database nothing.
func (t *tables) Print(w io.Writer) error { return t.inner.Print(w) }

// Check implements admin.SchemaChecker: it reports whether the tables are such
// that this release works with and have kept what once-only effects stand on. Its
// error names every fault with what to do, and wraps semel.ErrSchema. It changes
// nothing.
func (t *tables) Check(ctx context.Context) error { return t.inner.Check(ctx) }

// Setup runs statements of the user's once, in one transaction with a record of
// their hash, and reports whether it ran them. name is for people. After an error
// nothing of them ran, unless the error says otherwise; see sqlstore.Store.Setup.
func (t *tables) Setup(ctx context.Context, name, statements string) (ran bool, err error) {
	return t.inner.Setup(ctx, name, statements)
}

// Seed marks the ids of another table as applied, for a consumer that takes over
// what other code has processed. After an error, or the end of ctx, what was
// seeded stays and the next call goes on behind it; see sqlstore.Store.Seed.
func (t *tables) Seed(ctx context.Context, o sqlstore.Seed) (sqlstore.Seeded, error) {
	return t.inner.Seed(ctx, o)
}

// Rows implements store.Inbox: the messages that were set aside, by number. A
// limit of 0 means 1,000.
func (t *tables) Rows(ctx context.Context, f store.RowFilter) ([]store.StoredRow, error) {
	return t.inner.Rows(ctx, f)
}

// Discard implements store.Inbox: it closes rows, with their markers and a record of each act.
func (t *tables) Discard(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return t.inner.Discard(ctx, a, rows...)
}

// Requeue implements admin.Requeuer: it makes rows due now.
func (t *tables) Requeue(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return t.inner.Requeue(ctx, a, rows...)
}

// PrintReaper writes SQL that makes a procedure which reaps, with the calls of it for these
// consumers, for a scheduler of the database's own. It asks the database nothing.
func (t *tables) PrintReaper(w io.Writer, consumers []string) error {
	return t.inner.PrintReaper(w, consumers)
}

// crypt is how what is kept of messages is encrypted.
func (t *tables) crypt() sqlform.Crypt { return sqlstore.Crypt(t.inner) }
