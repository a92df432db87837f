// Package inspect provides information for people and metrics: what is known about a message,
// which rows contradict their markers, and how many rows there are. No decision depends on it.
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

// Known is what the store knows about an identity under one source.
type Known struct {
	Key semel.Key
	// Generation is the generation of the derivation; see admin.Derivation.
	Generation int64
	// The outcome of the marker may be one that only a newer release knows.
	admin.StoredMarker
	// Result: the handler's result is stored.
	Result bool
}

// Known returns what the store knows about an id of a consumer, for each of its sources,
// ordered by source; at most 1,000. Known is informative only.
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

// RowsOf returns the rows of an id of a consumer, by number, including conflicts and rows
// whose id belongs to none of the daily partitions. bodies includes the bodies of their messages.
func (s *Store) RowsOf(ctx context.Context, consumer, id string, bodies bool) ([]store.StoredRow, error) {
	key, _ := sqlform.ID([]byte(id))
	return inbox.Rows(ctx, s.db, store.RowFilter{Consumer: consumer, Bodies: bodies}, func(c *inbox.Conditions) {
		c.And("i.id in (?, ?)", key, sqlform.AsideKey(key))
	})
}

// Caused returns the rows that a message caused, such as intents, by number: at most 1,000,
// after the given number. PostgreSQL reads all rows for that unless the index exists that is
// created for consumers that send again (admin.Emitter).
func (s *Store) Caused(ctx context.Context, by semel.Key, after int64) ([]store.StoredRow, error) {
	return inbox.Rows(ctx, s.db, store.RowFilter{After: after}, func(c *inbox.Conditions) { c.And("i.cause = ?", intents.Cause(by)) })
}

// Erased returns the audit records of commands that erased an identity without rows, oldest first; at most 1,000.
func (s *Store) Erased(ctx context.Context, key semel.Key) ([]store.Act, error) {
	return operators.Acts(ctx, s.db, s.db.SQL.Erased, erasure.Result(key), database.MostRows)
}

// Clock returns the time by the store's clock, which decides when leases and waits end.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	var now int64
	if err := s.db.Pool.QueryRowContext(ctx, s.db.SQL.Clock).Scan(&now); err != nil {
		return time.Time{}, s.db.Blameless("clock", err)
	}
	return time.UnixMilli(now), nil
}

// Upkeep counts what needs attention in a consumer. Counts stop at ten thousand.
type Upkeep struct {
	// Parked counts parked rows without suppressed intents. Oldest is the age of the oldest.
	Parked int64
	Oldest time.Duration
	// Stale counts claims whose lease ended a minute ago or earlier. Unknown counts rows with
	// a call of unknown outcome. Killing counts rows that were parked because the processes
	// that ran them always died.
	Stale, Unknown, Killing int64
	// Repeated counts the rows with at least one duplicate, among the Latest rows that were
	// examined.
	Repeated, Latest int64
}

// Upkeep returns the counts of a consumer.
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

// KnownKey is the state of a leased key, for people.
type KnownKey struct {
	// Ended is the outcome of the last claim; 0 if the last claim has not ended.
	Ended keystore.Event
	// First is the time of the first claim, Until the end of the current lease, and Kept the
	// time until which the key is kept.
	First, Until, Kept time.Time
	// Started counts the claims, Finished those with a known outcome.
	Started, Finished int
	Fingerprint       semel.Fingerprint
	// Result: a result is stored.
	Result bool
}

// LeasedKey returns a leased key; found is false if the store does not have it any more.
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
	k.Result = k.Result && (k.Ended == keystore.Complete || k.Ended == keystore.Fail) // otherwise it is a note
	return k, true, nil
}
