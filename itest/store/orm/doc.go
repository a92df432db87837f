// Package orm shows consumers in PostgreSQL that use libraries which are common in Go services. The page
// docs/guides/postgres.md shows the functions of this package, and the tests run these functions.
package orm

// Payment is the body of a message.
type Payment struct {
	Account string
	Amount  int64
}
