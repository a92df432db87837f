package sqlhandler

import (
	"strconv"

	"github.com/semel-go/semel/internal/sqltext"
)

// Dialect describes how a database writes and runs statements.
type Dialect struct {
	// Name is "sqlite" or "postgres".
	Name string
	// placeholder returns the placeholder of parameter n. The parameters are numbered from 1.
	placeholder func(n int) string
	// reusesParams means that a parameter with several occurrences is sent once.
	reusesParams bool
	// text describes how statements are parsed.
	text sqltext.Dialect
	// cachesPrepared means that preparing a statement needs no round trip and saves work when the statement
	// runs again.
	cachesPrepared bool
	// sendsText means that all values except bytes are sent as text. The database converts the text to the
	// type of the column, so a number also fits a text column.
	sendsText bool
	// schema and prefix locate Semel's own tables. If prefix is empty, statements are not checked for
	// Semel's tables.
	schema, prefix string
	// singleMessage means that each transaction has only one message.
	singleMessage bool
}

// Tables returns the dialect for a store with Semel's tables in this schema and with this prefix. For this
// dialect, Check rejects statements that name Semel's own tables.
func (d Dialect) Tables(schema, prefix string) Dialect {
	d.schema, d.prefix = schema, prefix
	return d
}

// Alone returns the dialect for a consumer with batches of one message. In batches of one message, settings
// that last for a transaction affect no other message.
func (d Dialect) Alone() Dialect {
	d.singleMessage = true
	return d
}

// SQLite returns the dialect of SQLite.
func SQLite() Dialect {
	return Dialect{Name: "sqlite", placeholder: func(int) string { return "?" }, text: sqltext.SQLite(), cachesPrepared: true}
}

// Postgres returns the dialect of PostgreSQL and of compatible databases.
func Postgres() Dialect {
	return Dialect{Name: "postgres", placeholder: func(n int) string { return "$" + strconv.Itoa(n) }, reusesParams: true,
		text: sqltext.Postgres(), sendsText: true}
}
