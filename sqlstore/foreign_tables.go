package sqlstore

import (
	"context"
	"time"

	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/adoption"
	"github.com/semel-go/semel/sqlstore/internal/daily"
	"github.com/semel-go/semel/sqlstore/internal/database"
)

// Dated says whose markers lie in a table of days. See Store.Dated.
type Dated struct {
	// Consumer is the name of the only consumer that uses the store.
	Consumer string
	// IDTime is the kind of all of its ids. Days of Snowflakes are told by their decimal
	// texts: one of before May 2018, which has fewer digits, counts as of another time.
	IDTime identity.IDTime
	// Back is how many days before this one are made with the table: those of messages that
	// are still to come. At most 3650. It means nothing when the table is there.
	Back int
	// Move has the first call move markers of the consumer from the table of all into its
	// own, in one transaction. No process of the consumer may run meanwhile: one that was
	// started before would go on marking where nobody looks. Without it such markers are an
	// error. BeginMove and EndMove move them while processes work.
	Move bool
}

// Moved says what EndMove has done.
type Moved struct {
	// Copied are markers that were written into the table of days; Removed those that were
	// removed from the table of all.
	Copied, Removed int64
	// Held is for how long the consumer's processes could not mark.
	Held time.Duration
	// Fenced: whoever still marks in the table of all for the consumer meets an error. It
	// takes a lock of that table, which others may have had for too long: call EndMove again.
	Fenced bool
}

// Dated returns a store on the same database for one consumer, whose markers lie in a
// table of their own of a partition for each day, by the time that ids carry. A day that is
// past its retention is dropped, with no dead rows and hardly any work, in place of deleting
// its markers one by one; see store.Limits.PartitionedBy for what becomes of ids outside of the days
// that are kept. Ids that are not of the kind are no usable identities.
//
// The first call makes the table, which takes the right to create tables in the schema; so
// does whatever makes days, at least one in four days: Retain, Progressed and Advance. An
// error that wraps semel.ErrState: the consumer has another kind of ids there, or markers in
// the table of all, where nobody would look for them, unless BeginMove was called. SQLite,
// and a store that adopted a table: semel.ErrUnsupported.
func (s *Store) Dated(ctx context.Context, o Dated) (*Store, error) {
	return wrap(daily.OpenDays(ctx, s.db, database.Dated(o)))
}

// EndMove ends what BeginMove began. It copies the markers, has the consumer's processes
// wait while it copies the last ones, and from then on all that use a store of Dated mark in
// days. No process may run any more that uses another store for the consumer; one that does
// is kept from marking once Fenced. At last it removes what was copied.
//
// It may fail, or be killed, at any time: the move has then ended or not, and another call
// goes on. semel.ErrState: no move has begun, or markers have ids in another spelling than a
// store of days has, whose copies would be fresh.
func (s *Store) EndMove(ctx context.Context, consumer string) (Moved, error) {
	done, err := daily.EndMove(ctx, s.db, consumer)
	return Moved(done), err
}

// BeginMove begins to move markers of a consumer from the table of all into a table of days,
// while its processes work. From then on Dated opens for it, and processes that use the
// store which it returns may run beside those that do not: until EndMove both mark in the
// table of all. Only ids in the one spelling that a store of days has are fit for the
// former. Move means nothing here. It takes the right to create tables in the schema.
//
// A move that has begun is no error. semel.ErrState: the markers lie in a table of days, or
// move there for ids of another kind. semel.ErrUnsupported as with Dated.
func (s *Store) BeginMove(ctx context.Context, o Dated) error {
	return daily.BeginMove(ctx, s.db, database.Dated(o))
}

// Adopted is a table of processed messages that other code made and may go on
// filling. See Store.Adopt.
type Adopted struct {
	// Consumer is the name of the only consumer that uses the store.
	Consumer string
	// Source is the only source that its identities have, where the table has
	// no column for sources; empty if they have none.
	Source string
	// Table is written as in SQL; with its schema where the search_path does
	// not lead to it.
	Table string
	// ID is the column of ids, of type text, varchar, uuid, bytea, bigint,
	// integer or smallint. Names of columns are in the catalogue's spelling.
	ID string
	// ConsumerColumn, SourceColumn and AtColumn name those for the consumer,
	// the source and the time; empty where the table has none, or where its
	// default is right. A unique key must have exactly the first two, if they
	// are named, and ID.
	ConsumerColumn, SourceColumn, AtColumn string
	// Values are what further columns get, such as a status. A row of the table
	// says applied whatever they are. The value of ConsumerColumn is Consumer,
	// unless it is here.
	Values map[string]string
}

// Adopt returns a store on the same database for one consumer, which marks in
// a table of the user's as well as in Semel's: each row of the table counts as
// applied, and whatever the consumer applies has a row there, written in the
// same transaction. So other code that marks there may run before, after and
// at the same time, and each message takes effect once. What is parked,
// discarded or dead-lettered has no row there. Rows that the other code wrote
// have no fingerprint: other content under their ids is a duplicate.
//
// An id that the column cannot hold is no usable identity.
//
// The table and its columns are checked here and by Check; an error that wraps
// semel.ErrSchema says what to change. Semel's own tables must be there: Adopt
// notes which consumer has the table, and refuses another. SQLite:
// semel.ErrUnsupported.
func (s *Store) Adopt(ctx context.Context, a Adopted) (*Store, error) {
	return wrap(s.db.Adopt(ctx, adoption.Options(a)))
}
