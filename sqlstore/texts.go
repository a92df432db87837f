package sqlstore

import "maps"

// Statements are what the store sends, by name: for drivers of another
// interface that work on the same tables. They belong to the schema of this
// release and change with it.
func Statements(s *Store) map[string]string { return maps.Clone(s.sql) }

// Remedy says what to do about an error of a PostgreSQL server, from any
// driver; it is empty if there is nothing to say. own says that the statement
// was the store's: an error of another's gets no advice about Semel's tables.
func Remedy(err error, own bool) string {
	if remedy := postgresOwnRemedy(err); own && remedy != "" {
		return remedy
	}
	return postgresRemedies[sqlState(err)]
}
