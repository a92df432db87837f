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

// inherited are the methods of sqlstore that the stores use unchanged.
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

// tables are Semel's tables in the pool's database. sqlstore implements the operations outside
// of batches.
type tables struct {
	inherited
	inner    *sqlstore.Store
	exchange *exchange
}

// Migrate applies the missing migrations, each in its own transaction, and returns their
// names. Several processes may call it at once. After an error, the returned migrations are
// applied and the others are not. Migrate rejects a database in which the tables would not
// work, before it creates anything, and a schema of a later major version; the error wraps
// semel.ErrSchema. Migrate does not inspect existing tables: see Check.
func (t *tables) Migrate(ctx context.Context) (applied []string, err error) {
	return t.inner.Migrate(ctx)
}

// Status returns every migration that this release knows or the database has, in order. A
// migration with another content, or of a later major version, is an error that wraps
// semel.ErrSchema; in the latter case the migrations are returned, too.
func (t *tables) Status(ctx context.Context) ([]sqlstore.Migration, error) {
	return t.inner.Status(ctx)
}

// Print writes the SQL of all migrations and of their records, for teams that apply it with
// another tool. Print does not access the database.
func (t *tables) Print(w io.Writer) error { return t.inner.Print(w) }

// Check implements admin.SchemaChecker: it reports whether the tables fit this release and
// still have everything that exactly-once processing needs. Its error names every fault with
// its remedy, and wraps semel.ErrSchema. Check changes nothing.
func (t *tables) Check(ctx context.Context) error { return t.inner.Check(ctx) }

// Setup runs the user's statements once, in one transaction with a record of their hash, and
// reports whether it ran them. name is for people. After an error nothing of them ran, unless
// the error says otherwise; see sqlstore.Store.Setup.
func (t *tables) Setup(ctx context.Context, name, statements string) (ran bool, err error) {
	return t.inner.Setup(ctx, name, statements)
}

// Seed marks the ids of another table as applied, for a consumer that replaces other code.
// After an error or the end of ctx, the ids seeded so far stay, and the next call continues
// after them; see sqlstore.Store.Seed.
func (t *tables) Seed(ctx context.Context, o sqlstore.Seed) (sqlstore.Seeded, error) {
	return t.inner.Seed(ctx, o)
}

// Rows implements store.Inbox: it returns rows of the inbox by number. A limit of 0 means
// 1,000.
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

// PrintReaper writes SQL that creates a procedure that works as a reaper, and the calls of it
// for these consumers, for a scheduler in the database. PrintReaper does not access the
// database.
func (t *tables) PrintReaper(w io.Writer, consumers []string) error {
	return t.inner.PrintReaper(w, consumers)
}

// crypt returns the encryption of the store.
func (t *tables) crypt() sqlform.Crypt { return sqlstore.Crypt(t.inner) }
