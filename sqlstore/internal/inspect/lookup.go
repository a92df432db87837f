// Package inspect provides information for people and for metrics: the records of a message, rows that contradict their
// markers, and the number of rows. Consumers do not use the results of package inspect for decisions.
package inspect

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/erasure"
	"github.com/semel-go/semel/internal/intents"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/sqlstore/internal/daily"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/inbox"
	"github.com/semel-go/semel/sqlstore/internal/operators"
	"github.com/semel-go/semel/store"
)

// Store reads information from a database.
type Store struct {
	db      *database.DB
	mu      sync.Mutex
	sampled map[store.RowState]sampledTo // guarded by mu
}

// New returns the Store of a database.
func New(db *database.DB) *Store { return &Store{db: db} }

// Known is the information that the store has about an identity of one source.
type Known struct {
	Key semel.Key
	// Generation is the generation (see admin.Derivation) of the markers that have the id.
	Generation int64
	// Outcome may have a value that only a newer release knows.
	admin.StoredMarker
	// Result is true if the store has the handler's result.
	Result bool
}

// Known returns the information about an id of a consumer, for each source, ordered by source; at most 1,000 entries.
// The information is only for people: no decision may depend on it.
func (s *Store) Known(ctx context.Context, consumer, id string) ([]Known, error) {
	own, err := daily.OfConsumer(ctx, s.db, consumer)
	if err != nil {
		return nil, err
	}
	key, _ := sqlform.ID([]byte(id))
	all, err := database.List(ctx, s.db.Pool, own.SQL.KnownMarkers, func(rows *sql.Rows) (Known, error) {
		k := Known{Key: semel.Key{Consumer: consumer, ID: id}}
		var source, sum []byte
		var outcome, at, version int64
		err := rows.Scan(&source, &k.Generation, &outcome, &at, &version, &sum, &k.Result)
		k.Key.Source, k.Outcome = string(source), store.Outcome(outcome)
		k.At, k.Fingerprint = time.UnixMilli(at), s.db.Crypt.ReadPrint(sqlform.PrintOfID, key, version, sum)
		return k, err
	}, []byte(consumer), key)
	return all, s.db.Answer("known markers", err)
}

// RowsOf returns the rows of an id of a consumer, ordered by number. The result includes conflicts, and rows
// whose id belongs to no daily partition. If bodies is true, the messages of the rows have their bodies.
func (s *Store) RowsOf(ctx context.Context, consumer, id string, bodies bool) ([]store.StoredRow, error) {
	key, _ := sqlform.ID([]byte(id))
	return inbox.Rows(ctx, s.db, store.RowFilter{Consumer: consumer, Bodies: bodies}, func(c *inbox.Conditions) {
		c.And("i.id in (?, ?)", key, sqlform.AsideKey(key))
	})
}

// Caused returns the rows that a message caused, such as intents, ordered by number. Caused returns at most 1,000 rows,
// with numbers above the parameter after. For consumers that send intents again (admin.Emitter), there is an index on
// causes. Without an index on causes, PostgreSQL reads all rows.
func (s *Store) Caused(ctx context.Context, by semel.Key, after int64) ([]store.StoredRow, error) {
	return inbox.Rows(ctx, s.db, store.RowFilter{After: after}, func(c *inbox.Conditions) { c.And("i.cause = ?", intents.Cause(by)) })
}

// Erased returns the audit records of commands that erased an identity without rows, oldest first; at most
// 1,000.
func (s *Store) Erased(ctx context.Context, key semel.Key) ([]store.Act, error) {
	return operators.Acts(ctx, s.db, s.db.SQL.Erased, erasure.Result(key), database.MostRows)
}

// Clock returns the time of the store's clock, which decides when a lease or a wait ends.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	var now int64
	if err := s.db.Pool.QueryRowContext(ctx, s.db.SQL.Clock).Scan(&now); err != nil {
		return time.Time{}, s.db.Blameless("clock", err)
	}
	return time.UnixMilli(now), nil
}

// Upkeep has the figures of a consumer that an operator should check. Counting stops at ten thousand.
type Upkeep struct {
	// Parked is the number of parked rows, without suppressed intents. Oldest is the age of the oldest parked row.
	Parked int64
	Oldest time.Duration
	// Stale is the number of claims whose lease ended a minute ago or earlier. Unknown is the number of rows
	// with a call whose outcome is unknown. Killing is the number of rows that were parked because each
	// process that handled them died.
	Stale, Unknown, Killing int64
	// Repeated is the number of rows that had a duplicate. Only the newest Latest rows are counted.
	Repeated, Latest int64
}

// Upkeep returns the figures of a consumer that an operator should check.
func (s *Store) Upkeep(ctx context.Context, consumer string) (Upkeep, error) {
	var n Upkeep
	var oldest int64
	err := s.db.Pool.QueryRowContext(ctx, s.db.SQL.Upkeep, []byte(consumer)).Scan(&n.Parked, &oldest, &n.Stale, &n.Unknown, &n.Killing, &n.Repeated, &n.Latest)
	if err != nil {
		return n, s.db.Blameless("upkeep", err)
	}
	n.Oldest = time.Duration(oldest) * time.Millisecond
	return n, nil
}

// KnownKey is the state of a leased key, only for people.
type KnownKey struct {
	// Ended is the event that ended the last claim; 0 if the claim has not ended.
	Ended keystore.Event
	// First is the time of the first claim. Until is the end of the current lease. Kept is the time until
	// which the store keeps the key.
	First, Until, Kept time.Time
	// Started is the number of claims. Finished is the number of claims with a known outcome.
	Started, Finished int
	Fingerprint       semel.Fingerprint
	// Result is true if the store has a result for the key.
	Result bool
}

// LeasedKey returns a leased key. The result found is false if the store does not have the key, or no longer has the
// key.
func (s *Store) LeasedKey(ctx context.Context, key semel.Key) (k KnownKey, found bool, err error) {
	var ended, first, until, kept, version int64
	var sum []byte
	err = s.db.Pool.QueryRowContext(ctx, s.db.SQL.KnownKey, sqlform.KeySum(key)).Scan(&ended, &first, &until, &kept, &k.Started, &k.Finished, &version, &sum, &k.Result)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return k, false, nil
	case err != nil:
		return k, false, s.db.Blameless("known key", err)
	}
	k.Ended, k.First, k.Until, k.Kept = keystore.Event(ended), time.UnixMilli(first), time.UnixMilli(until), time.UnixMilli(kept)
	k.Fingerprint = s.db.Crypt.ReadPrint(sqlform.PrintOfKey, sqlform.KeySum(key), version, sum)
	k.Result = k.Result && (k.Ended == keystore.Complete || k.Ended == keystore.Fail) // in other cases the column contains a note
	return k, true, nil
}
