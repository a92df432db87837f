package sqlhandler

import "strconv"

// Dialect is what the text of a statement depends on.
type Dialect struct {
	// Name is of the database: "sqlite", "postgres".
	Name string
	// placeholder is the text for parameter n, counted from 1.
	placeholder func(n int) string
	// reuse: a parameter that stands twice is bound once.
	reuse bool
	// brackets: [name] is a quoted name.
	brackets bool
	// dollarBodies: $tag$ … $tag$ is a text, and comments nest.
	dollarBodies bool
	// prepares: preparing a statement costs no round trip, and running a
	// prepared one less.
	prepares bool
	// texts: every value but bytes is given as text, which the database reads
	// as what its place needs: a number fits a text column, too.
	texts bool
	// markers are the characters of placeholders that only Semel may write.
	markers string
}

// SQLite is the dialect of SQLite.
func SQLite() Dialect {
	return Dialect{Name: "sqlite", placeholder: func(int) string { return "?" }, brackets: true, prepares: true, markers: "?@$"}
}

// Postgres is the dialect of PostgreSQL and of what speaks its SQL.
func Postgres() Dialect {
	return Dialect{Name: "postgres", placeholder: func(n int) string { return "$" + strconv.Itoa(n) }, reuse: true,
		dollarBodies: true, texts: true, markers: "$"}
}
