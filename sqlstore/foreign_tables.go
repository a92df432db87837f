package sqlstore

import (
	"context"
	"time"

	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/adoption"
	"github.com/semel-go/semel/sqlstore/internal/daily"
	"github.com/semel-go/semel/sqlstore/internal/database"
)

// Dated are the options of Store.Dated.
type Dated struct {
	// Consumer is the name of the only consumer that uses the store.
	Consumer string
	// IDTime is the kind of all ids of the consumer. The day of a Snowflake id is determined
	// from the decimal text of the id. An id from before May 2018 has fewer digits, and the
	// store assumes a wrong day for it.
	IDTime identity.IDTime
	// Back is the number of days before today for which partitions are created with the table,
	// for older messages that are still to come. At most 3650. Back is ignored if the table
	// exists.
	Back int
	// Move makes the first call of Store.Dated move the consumer's markers from the common table
	// into the consumer's own table, in one transaction. No process of the consumer may run
	// meanwhile, because processes that were started before would still mark in the common
	// table. Without Move, Store.Dated returns an error if the common table has markers of the
	// consumer. BeginMove and EndMove move the markers while processes run.
	Move bool
}

// Moved is the result of EndMove.
type Moved struct {
	// Copied is the number of markers that were written into the table with daily partitions.
	// Removed is the number of markers that were removed from the common table.
	Copied, Removed int64
	// Held is how long the consumer's processes could not mark.
	Held time.Duration
	// Fenced: a process that still marks in the common table for the consumer gets an error.
	// The fence needs a lock of that table. If the lock is not free in time, Fenced is false:
	// call EndMove again.
	Fenced bool
}

// Dated returns a store on the same database for one consumer, whose markers are in their own
// table with a partition for each day. The time in a message's id determines the partition. A
// partition past its retention is dropped as a whole, which is fast and leaves no dead rows;
// otherwise its markers would be deleted one by one. See store.Limits.PartitionedBy for ids that
// belong to none of the partitions. Ids of another kind are not valid identities.
//
// The first call creates the table, which needs the privilege to create tables in the schema.
// Retain, Progressed and Advance create further partitions, which needs the same privilege; at
// least one of them must be called every four days. The error wraps semel.ErrState if the consumer's table has another
// kind of ids, or if the consumer has markers in the common table, unless BeginMove was
// called. It wraps semel.ErrUnsupported on SQLite and for a store that adopted a table.
func (s *Store) Dated(ctx context.Context, o Dated) (*Store, error) {
	return wrap(daily.OpenDays(ctx, s.db, database.Dated(o)))
}

// EndMove ends the move that BeginMove began. EndMove copies the markers. While it copies the
// last markers, the consumer's processes wait; from then on all stores that Dated opened mark in
// the table with daily partitions. No process may use another store for the consumer any more; once
// Fenced is set, such a process cannot mark. Finally EndMove removes the copied markers.
//
// If EndMove fails or is killed, call it again: the next call continues the move. The error wraps
// semel.ErrState if no move has begun, or if markers have ids in another spelling than the table
// with daily partitions uses, so that duplicates of their messages would count as fresh.
func (s *Store) EndMove(ctx context.Context, consumer string) (Moved, error) {
	done, err := daily.EndMove(ctx, s.db, consumer)
	return Moved(done), err
}

// BeginMove begins to move the markers of a consumer from the common table into a table with daily
// partitions, while the consumer's processes run. From then on Dated opens a store for the
// consumer, and processes with that store may run together with processes without that store: until
// EndMove, both mark in the common table. Processes with that store accept only ids in the spelling
// that the table with daily partitions uses. BeginMove ignores the option Move. BeginMove needs the
// privilege to create tables in the schema.
//
// A move that has already begun is no error. The error wraps semel.ErrState if the markers are
// already in a table with daily partitions, or if a move for another kind of ids has begun. It wraps
// semel.ErrUnsupported in the same cases as the error of Dated.
func (s *Store) BeginMove(ctx context.Context, o Dated) error {
	return daily.BeginMove(ctx, s.db, database.Dated(o))
}

// Adopted is a table of processed messages that other code created and may still write to. See
// Store.Adopt.
type Adopted struct {
	// Consumer is the name of the only consumer that uses the store.
	Consumer string
	// Source is the only source of its identities, if the table has no column for sources;
	// empty if they have no source.
	Source string
	// Table is the name of the table as in SQL, with its schema if the search_path does not
	// include it.
	Table string
	// ID is the column of ids, of type text, varchar, uuid, bytea, bigint, integer or
	// smallint. Column names are spelled as in the catalog.
	ID string
	// ConsumerColumn, SourceColumn and AtColumn name the columns for the consumer, the source
	// and the time. They are empty if the table has no such column, or if its default is
	// right. A unique key must consist of exactly ID and the first two, if they are named.
	ConsumerColumn, SourceColumn, AtColumn string
	// Values are the values of further columns, such as a status. A row of the table means
	// applied, whatever these values are. The value of ConsumerColumn is Consumer unless it is
	// given here.
	Values map[string]string
}

// Adopt returns a store on the same database for one consumer, which writes its markers in a
// table of the user as well as in Semel's. Each row of the table counts as applied, and every
// message that the consumer applies gets a row there in the same transaction. So other code
// that uses the table may run before, after and at the same time, and each message takes
// effect once. Parked, discarded and dead-lettered messages get no row there. Rows of the
// other code have no fingerprint: a message with the same id and other content counts as a
// duplicate.
//
// An id that does not fit the column is not a valid identity.
//
// Adopt and Check inspect the table and its columns; an error that wraps semel.ErrSchema says
// what to change. Semel's own tables must exist: Adopt records which consumer uses the table,
// and rejects another consumer. On SQLite it returns semel.ErrUnsupported.
func (s *Store) Adopt(ctx context.Context, a Adopted) (*Store, error) {
	return wrap(s.db.Adopt(ctx, adoption.Options(a)))
}
