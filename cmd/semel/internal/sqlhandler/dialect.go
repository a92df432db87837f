package sqlhandler

import (
	"strconv"

	"github.com/semel-go/semel/internal/sqltext"
)

// Dialect describes how the text of a statement depends on the database.
type Dialect struct {
	// Name is the name of the database: "sqlite", "postgres".
	Name string
	// placeholder returns the text for parameter n, counted from 1.
	placeholder func(n int) string
	// reuse: a parameter that occurs twice is bound once.
	reuse bool
	// text describes how the text is parsed.
	text sqltext.Dialect
	// prepares: preparing a statement costs no round trip, and running a prepared statement saves work.
	prepares bool
	// texts: every value except bytes is sent as text, which the database converts to the type of its
	// place: a number also fits a text column.
	texts bool
	// schema and prefix are those of Semel's own tables; an empty prefix means none.
	schema, prefix string
	// alone: no transaction has more than one message.
	alone bool
}

// Tables returns the dialect of a store whose own tables are in this schema and begin with this
// prefix. No statement may write to them.
func (d Dialect) Tables(schema, prefix string) Dialect {
	d.schema, d.prefix = schema, prefix
	return d
}

// Alone returns the dialect of a consumer with batches of one message, so settings that last for the
// transaction affect no other message.
func (d Dialect) Alone() Dialect {
	d.alone = true
	return d
}

// SQLite returns the dialect of SQLite.
func SQLite() Dialect {
	return Dialect{Name: "sqlite", placeholder: func(int) string { return "?" }, text: sqltext.SQLite(), prepares: true}
}

// Postgres returns the dialect of PostgreSQL and compatible databases.
func Postgres() Dialect {
	return Dialect{Name: "postgres", placeholder: func(n int) string { return "$" + strconv.Itoa(n) }, reuse: true,
		text: sqltext.Postgres(), texts: true}
}
