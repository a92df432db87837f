package sqlhandler

import (
	"strconv"

	"github.com/semel-go/semel/internal/sqltext"
)

// Dialect is what the text of a statement depends on.
type Dialect struct {
	// Name is of the database: "sqlite", "postgres".
	Name string
	// placeholder is the text for parameter n, counted from 1.
	placeholder func(n int) string
	// reuse: a parameter that stands twice is bound once.
	reuse bool
	// text says how the text is read.
	text sqltext.Dialect
	// prepares: preparing a statement costs no round trip, and running a
	// prepared one less.
	prepares bool
	// texts: every value but bytes is given as text, which the database reads
	// as what its place needs: a number fits a text column, too.
	texts bool
	// schema and prefix are of Semel's own tables; an empty prefix is none.
	schema, prefix string
	// alone: no transaction has more than one message.
	alone bool
}

// Tables is the dialect of a store whose own tables are in this schema and
// begin with this prefix: no statement may write them.
func (d Dialect) Tables(schema, prefix string) Dialect {
	d.schema, d.prefix = schema, prefix
	return d
}

// Alone is the dialect of a consumer whose batches are of one message: what
// lasts for the transaction reaches no other.
func (d Dialect) Alone() Dialect {
	d.alone = true
	return d
}

// SQLite is the dialect of SQLite.
func SQLite() Dialect {
	return Dialect{Name: "sqlite", placeholder: func(int) string { return "?" }, text: sqltext.SQLite(), prepares: true}
}

// Postgres is the dialect of PostgreSQL and of what speaks its SQL.
func Postgres() Dialect {
	return Dialect{Name: "postgres", placeholder: func(n int) string { return "$" + strconv.Itoa(n) }, reuse: true,
		text: sqltext.Postgres(), texts: true}
}
