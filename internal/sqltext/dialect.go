// Package sqltext parses SQL far enough to distinguish code from quotes and comments, to split it into statements,
// and to find statements that would end a transaction.
package sqltext

// Dialect describes the syntax of a database.
type Dialect struct {
	// Brackets means that [name] and `name` are names.
	Brackets bool
	// DollarBodies means that $tag$ … $tag$ is a text, that comments can be nested, and that E'…' has
	// escapes.
	DollarBodies bool
	// Placeholders contains the characters with which a placeholder can begin.
	Placeholders string
	// Catalog is the schema of the built-in objects. Exact writes this schema before their names.
	Catalog string
}

// SQLite returns the dialect of SQLite.
func SQLite() Dialect { return Dialect{Brackets: true, Placeholders: "?@$"} }

// Postgres returns the dialect of PostgreSQL and compatible databases.
func Postgres() Dialect { return Dialect{DollarBodies: true, Placeholders: "$", Catalog: "pg_catalog"} }
