// Package sqltext reads the text of SQL as far as is needed to tell code from
// quotes and comments, to cut it into statements, and to find those that would
// end a transaction.
package sqltext

// Dialect is what the text of a statement depends on.
type Dialect struct {
	// Brackets: [name] and `name` are quoted names.
	Brackets bool
	// DollarBodies: $tag$ … $tag$ is a text, comments nest, and E'…' has
	// escapes.
	DollarBodies bool
	// Placeholders are the characters that begin a placeholder.
	Placeholders string
	// Catalog is the schema of what is built in, by which Exact names it.
	Catalog string
}

// SQLite is the dialect of SQLite.
func SQLite() Dialect { return Dialect{Brackets: true, Placeholders: "?@$"} }

// Postgres is the dialect of PostgreSQL and of what speaks its SQL.
func Postgres() Dialect { return Dialect{DollarBodies: true, Placeholders: "$", Catalog: "pg_catalog"} }
