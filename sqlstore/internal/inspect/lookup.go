// Package inspect answers questions of people and of metrics: what is known of a message, which rows
// contradict their markers, and how many rows there are. Nothing is decided by its answers.
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

// Store answers questions about a database.
type Store struct {
	db      *database.DB
	mu      sync.Mutex
	sampled map[store.RowState]sampledTo // guarded by mu
}

// New returns the Store of a database.
func New(db *database.DB) *Store { return &Store{db: db} }

// Known is what the store knows of an identity under one source.
type Known struct {
	Key semel.Key
	// Generation is that of the derivation; see admin.Derivation.
	Generation int64
	// The marker may have an outcome that only a newer release knows: people may read it.
	admin.StoredMarker
	// Result says that what its handler made is kept.
	Result bool
}

// Known returns what the store knows of an id that a consumer has met, under each of its
// sources, by source: at most 1,000. It is for people and decides nothing.
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

// RowsOf are rows of an id that a consumer has met, by number, those of conflicts among them,
// also of one that stands aside of a table of days; bodies asks for their messages' bodies.
func (s *Store) RowsOf(ctx context.Context, consumer, id string, bodies bool) ([]store.StoredRow, error) {
	key, _ := sqlform.ID([]byte(id))
	return inbox.Rows(ctx, s.db, store.RowFilter{Consumer: consumer, Bodies: bodies}, func(c *inbox.Conditions) {
		c.And("i.id in (?, ?)", key, sqlform.AsideKey(key))
	})
}

// Caused are rows of what a message caused, such as intents, by number: those behind this
// one, at most a thousand. Without the index that a consumer makes which sends again
// (admin.Emitter) PostgreSQL reads all rows for that.
func (s *Store) Caused(ctx context.Context, by semel.Key, after int64) ([]store.StoredRow, error) {
	return inbox.Rows(ctx, s.db, store.RowFilter{After: after}, func(c *inbox.Conditions) { c.And("i.cause = ?", intents.Cause(by)) })
}

// Erased are acts that erased an identity of which no row was kept, oldest first, at most
// 1,000.
func (s *Store) Erased(ctx context.Context, key semel.Key) ([]store.Act, error) {
	return operators.Acts(ctx, s.db, s.db.SQL.Erased, erasure.Result(key), database.MostRows)
}

// Clock is what the store's clock says, by which leases and waits end.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	var now int64
	if err := s.db.Pool.QueryRowContext(ctx, s.db.SQL.Clock).Scan(&now); err != nil {
		return time.Time{}, s.db.Blameless("clock", err)
	}
	return time.UnixMilli(now), nil
}

// Upkeep is what of a consumer wants an eye. Counts end at ten thousand.
type Upkeep struct {
	// Parked rows are set aside, but for suppressed intents, the first of them Oldest ago.
	Parked int64
	Oldest time.Duration
	// Stale are claims whose lease has ended a minute ago, or longer; Unknown are rows with
	// a call of which nobody knows what became; Killing were parked since processes that
	// began them never came to an end.
	Stale, Unknown, Killing int64
	// Repeated are rows on which a copy was counted, of the Latest that were looked at.
	Repeated, Latest int64
}

// Upkeep says what of a consumer wants an eye.
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

// KnownKey is a leased key as people see it.
type KnownKey struct {
	// Ended is how the last claim ended; 0: it has not.
	Ended keystore.Event
	// First is when the key was claimed first, Until when the lease ends of who has it, Kept
	// until when it is kept.
	First, Until, Kept time.Time
	// Started are claims, Finished those of which the end is known.
	Started, Finished int
	Fingerprint       semel.Fingerprint
	// Result says that a result is kept.
	Result bool
}

// LeasedKey returns a leased key that is kept still; false: there is none.
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
	k.Result = k.Result && (k.Ended == keystore.Complete || k.Ended == keystore.Fail) // else it is a note
	return k, true, nil
}
