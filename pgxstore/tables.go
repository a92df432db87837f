package pgxstore

import (
	"context"
	"io"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// tables are Semel's tables in the pool's database, with what is done on them
// seldom and outside of batches: sqlstore does it.
type tables struct {
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

// Record implements admin.Recorder: it writes down what a person did to no one row.
func (t *tables) Record(ctx context.Context, a store.Act) error { return t.inner.Record(ctx, a) }

// Acts implements store.Inbox: who did what to a row, or with 0 to any. A limit of
// 0 means 1,000.
func (t *tables) Acts(ctx context.Context, number int64, limit int) ([]store.Act, error) {
	return t.inner.Acts(ctx, number, limit)
}

// Pending implements store.Inbox: how much of a consumer waits.
func (t *tables) Pending(ctx context.Context, consumer string) (store.Pending, error) {
	return t.inner.Pending(ctx, consumer)
}

// Requeue implements admin.Requeuer: it makes rows due now.
func (t *tables) Requeue(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return t.inner.Requeue(ctx, a, rows...)
}

// Edit implements admin.Editor.
func (t *tables) Edit(ctx context.Context, number, revision int64, body []byte, a store.Act) error {
	return t.inner.Edit(ctx, number, revision, body, a)
}

// Edits implements admin.Editor.
func (t *tables) Edits(ctx context.Context, number int64, bodies bool) ([]admin.StoredEdit, error) {
	return t.inner.Edits(ctx, number, bodies)
}

// Release implements admin.Requeuer: it ends the claims of rows.
func (t *tables) Release(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return t.inner.Release(ctx, a, rows...)
}

// Reopen implements admin.Requeuer: it parks rows again that were discarded.
func (t *tables) Reopen(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return t.inner.Reopen(ctx, a, rows...)
}

// Suppress implements admin.Requeuer: it parks rows that wait.
func (t *tables) Suppress(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return t.inner.Suppress(ctx, a, rows...)
}

// Claim implements store.Leases.
func (t *tables) Claim(ctx context.Context, o store.ClaimOptions) ([]store.Claimed, error) {
	return t.inner.Claim(ctx, o)
}

// Held implements store.Leases.
func (t *tables) Held(ctx context.Context, consumer string, token store.Token) ([]store.Claimed, error) {
	return t.inner.Held(ctx, consumer, token)
}

// Extend implements store.Leases.
func (t *tables) Extend(ctx context.Context, claims []store.Claim, lease time.Duration) ([]int, error) {
	return t.inner.Extend(ctx, claims, lease)
}

// StartCalls implements store.Leases.
func (t *tables) StartCalls(ctx context.Context, claims []store.Claim, lease time.Duration) ([]store.CallStarted, error) {
	return t.inner.StartCalls(ctx, claims, lease)
}

// Resolve implements admin.Resolver: it records what became of calls whose outcome is
// unknown.
func (t *tables) Resolve(ctx context.Context, r admin.Resolution, a store.Act, rows ...store.RowRevision) []error {
	return t.inner.Resolve(ctx, r, a, rows...)
}

// Start implements store.Leases.
func (t *tables) Start(ctx context.Context, claims []store.Claim) ([]int, error) {
	return t.inner.Start(ctx, claims)
}

// End implements store.Leases.
func (t *tables) End(ctx context.Context, endings []store.ClaimEnding) ([]int, error) {
	return t.inner.End(ctx, endings)
}

// Reclaim implements store.Leases.
func (t *tables) Reclaim(ctx context.Context, numbers []int64, from []store.Token, to store.Token) ([]store.Reclaimed, error) {
	return t.inner.Reclaim(ctx, numbers, from, to)
}

// Marker implements admin.MarkerReader: what became of a message, and whether
// there is anything.
func (t *tables) Marker(ctx context.Context, key semel.Key) (store.StoredMarker, bool, error) {
	return t.inner.Marker(ctx, key)
}

// Scope implements store.TxStore.
func (t *tables) Scope(ctx context.Context, consumer, source string, generation int64) (int64, error) {
	return t.inner.Scope(ctx, consumer, source, generation)
}

// Scopes implements admin.Interner.
func (t *tables) Scopes(ctx context.Context, consumer string, sources []string, generation int64) ([]int64, error) {
	return t.inner.Scopes(ctx, consumer, sources, generation)
}

// Derivations implements admin.Derivations.
func (t *tables) Derivations(ctx context.Context, consumer string) ([]admin.Derivation, error) {
	return t.inner.Derivations(ctx, consumer)
}

// AddDerivation implements admin.Derivations.
func (t *tables) AddDerivation(ctx context.Context, d admin.Derivation) (bool, error) {
	return t.inner.AddDerivation(ctx, d)
}

// RetireDerivation implements admin.Derivations.
func (t *tables) RetireDerivation(ctx context.Context, consumer string, generation int64, retired bool, a store.Act) error {
	return t.inner.RetireDerivation(ctx, consumer, generation, retired, a)
}

// Owner implements admin.Derivations.
func (t *tables) Owner(ctx context.Context, consumer string) (string, error) {
	return t.inner.Owner(ctx, consumer)
}

// SetOwner implements admin.Derivations.
func (t *tables) SetOwner(ctx context.Context, consumer, was, owner string) (bool, error) {
	return t.inner.SetOwner(ctx, consumer, was, owner)
}

// Consumers implements admin.Derivations.
func (t *tables) Consumers(ctx context.Context) ([]string, error) { return t.inner.Consumers(ctx) }

// LoadPosition implements source.PositionStore.
func (t *tables) LoadPosition(ctx context.Context, consumer, lane string) (source.Position, bool, error) {
	return t.inner.LoadPosition(ctx, consumer, lane)
}

// SavePosition implements source.PositionStore.
func (t *tables) SavePosition(ctx context.Context, consumer, lane string, p source.Position) error {
	return t.inner.SavePosition(ctx, consumer, lane, p)
}

// KeepPosition implements source.PositionStore.
func (t *tables) KeepPosition(ctx context.Context, consumer, lane string, p source.Position) (source.Position, error) {
	return t.inner.KeepPosition(ctx, consumer, lane, p)
}

// Control implements admin.Controls: what operators want of a consumer now.
func (t *tables) Control(ctx context.Context, consumer string) (admin.Control, error) {
	return t.inner.Control(ctx, consumer)
}

// Pause implements admin.Controls: it pauses a consumer, or lets it go on.
func (t *tables) Pause(ctx context.Context, consumer string, paused bool, a store.Act) error {
	return t.inner.Pause(ctx, consumer, paused, a)
}

// Limit implements admin.Controls: it sets how many messages a second each process
// of a consumer may take, 0 for no limit.
func (t *tables) Limit(ctx context.Context, consumer string, perSecond int, a store.Act) error {
	return t.inner.Limit(ctx, consumer, perSecond, a)
}

// Offsets implements source.OffsetStore. They stand in the table of positions.
func (t *tables) Offsets(ctx context.Context, consumer string, lanes []string) ([]source.LaneOffset, error) {
	return t.inner.Offsets(ctx, consumer, lanes)
}

// AdvanceOffsets implements source.OffsetStore.
func (t *tables) AdvanceOffsets(ctx context.Context, consumer string, to []source.OffsetAdvance) ([]source.LaneOffset, error) {
	return t.inner.AdvanceOffsets(ctx, consumer, to)
}

// IsStoreFault implements store.TxStore: for lock time-outs, full disks, lack
// of memory and files that cannot be read or written.
func (t *tables) IsStoreFault(err error) bool { return t.inner.IsStoreFault(err) }
