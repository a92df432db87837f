package sqlstore

import (
	"context"

	"github.com/semel-go/semel/internal/adoption"
)

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
