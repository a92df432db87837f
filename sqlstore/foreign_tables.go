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
	// IDTime is the kind of all ids of the consumer. The daily partition of a Snowflake id is determined from
	// the decimal text of the id. An id from before May 2018 has fewer digits, so the store would choose a
	// wrong partition.
	IDTime identity.IDTime
	// Back is the number of days before today for which the first call creates partitions. Partitions for days before
	// today are needed if older messages can still arrive. At most 3650. Back is ignored if the table exists.
	Back int
	// If Move is true, the first call of Store.Dated moves the consumer's markers from the table of markers that all
	// consumers share into the consumer's own table, in one transaction. No process of the consumer may run during the
	// move, because a process that was started before would still write its markers to the table that all consumers
	// share. Without Move, Store.Dated returns an error if the table that all consumers share has markers of the
	// consumer. BeginMove and EndMove move the markers while processes run.
	Move bool
}

// Moved is the result of EndMove.
type Moved struct {
	// Copied is the number of markers that were written into the table with daily partitions. Removed is the number of
	// markers that were removed from the table that all consumers share.
	Copied, Removed int64
	// Held is the time for which the consumer's processes could not write markers.
	Held time.Duration
	// Fenced is true if the table that all consumers share now rejects markers of the consumer, so that a process with
	// an old store gets an error. To reject markers, EndMove needs a lock on the table that all consumers share. If the
	// lock is not free in time, Fenced is false: call EndMove again.
	Fenced bool
}

// Dated returns a store for one consumer on the same database. The consumer's markers are in a table of their own, with
// one partition for each day. The time in a message's id determines the partition. When the retention of a partition
// has passed, the whole partition is dropped, which is fast and leaves no dead rows; in the table that all consumers
// share, the markers would be deleted row by row. For ids that belong to no partition, see store.Limits.PartitionedBy.
// Ids of another kind are not valid identities.
//
// The first call creates the table, which needs the privilege to create tables in the schema. Retain, Progressed and
// Advance create further partitions, which needs the same privilege. At least one of the methods Retain, Progressed and
// Advance must be called every four days. The error wraps semel.ErrState if the consumer's table has another kind of
// ids. The error also wraps semel.ErrState if the consumer has markers in the table that all consumers share and
// BeginMove was not called. The error wraps semel.ErrUnsupported on SQLite and for a store that adopted a table.
func (s *Store) Dated(ctx context.Context, o Dated) (*Store, error) {
	return wrap(daily.OpenDays(ctx, s.db, database.Dated(o)))
}

// EndMove ends the move that BeginMove began. EndMove copies the markers. While the last markers are copied, the
// consumer's processes wait. After EndMove, all stores that Dated opened write markers to the table with daily
// partitions. No process may use another store for the consumer any more; once Fenced is set, such a process cannot
// write markers. Finally EndMove removes the copied markers from the table that all consumers share.
//
// If EndMove fails or is killed, call it again: the next call continues the move. The error wraps semel.ErrState if no
// move has begun. The error also wraps semel.ErrState if the ids of markers are spelled differently than in the table
// with daily partitions (for example in upper case), because duplicates of their messages would count as new.
func (s *Store) EndMove(ctx context.Context, consumer string) (Moved, error) {
	done, err := daily.EndMove(ctx, s.db, consumer)
	return Moved(done), err
}

// BeginMove begins to move the markers of a consumer from the table that all consumers share into a table with daily
// partitions, while the consumer's processes run. After BeginMove, Dated opens a store for the consumer. Processes with
// this new store may run together with processes that use the old store: until EndMove, all processes write markers to
// the table that all consumers share. Processes with the new store accept only ids in the spelling that the table with
// daily partitions uses. BeginMove ignores the option Move. BeginMove needs the privilege to create tables in the
// schema.
//
// If a move has already begun, BeginMove returns no error. The error wraps semel.ErrState if the markers are
// already in a table with daily partitions, or if a move for another kind of ids has begun. The error wraps
// semel.ErrUnsupported in the same cases as the error of Dated.
func (s *Store) BeginMove(ctx context.Context, o Dated) error {
	return daily.BeginMove(ctx, s.db, database.Dated(o))
}

// Adopted is a table of processed messages that other code created and may still write to. See
// Store.Adopt.
type Adopted struct {
	// Consumer is the name of the only consumer that uses the store.
	Consumer string
	// Source is the only source of the consumer's identities, if the table has no column for sources. Source is empty
	// if the identities have no source.
	Source string
	// Table is the name of the table as in SQL, with its schema if the search_path does not
	// include it.
	Table string
	// ID is the column of ids, of type text, varchar, uuid, bytea, bigint, integer or
	// smallint. Column names are spelled as in the catalog.
	ID string
	// ConsumerColumn, SourceColumn and AtColumn name the columns for the consumer, the source and the time. A name is
	// empty if the table does not have the column, or if the column has a suitable default. The table must have a
	// unique key of exactly these columns: ID, and ConsumerColumn and SourceColumn if they are named.
	ConsumerColumn, SourceColumn, AtColumn string
	// Values are the values of further columns, such as a status, in the rows that Semel writes. When Semel reads a
	// row, the row means that the message was applied, independently of the contents of the further columns. The value
	// of ConsumerColumn is Consumer unless Values has another.
	Values map[string]string
}

// Adopt returns a store for one consumer on the same database. The store writes the consumer's markers to Semel's
// table, and also to a user's own table. Each row of the user's table counts as an applied message, and for every
// message that the consumer applies, the store writes a row to this table in the same transaction. So other code that
// uses the table may run before, after and at the same time, and each message takes effect once. Parked, discarded and
// dead-lettered messages get no row in the user's table. Rows that other code wrote have no fingerprint, so a message
// with the same id and other content counts as a duplicate.
//
// An id that does not fit the column is not a valid identity.
//
// Adopt and Check inspect the table and its columns; an error that wraps semel.ErrSchema says what to change.
// Semel's own tables must exist: Adopt records which consumer uses the table, and rejects another consumer. On
// SQLite Adopt returns semel.ErrUnsupported.
func (s *Store) Adopt(ctx context.Context, a Adopted) (*Store, error) {
	return wrap(s.db.Adopt(ctx, adoption.Options(a)))
}
