// Package orm shows consumers in PostgreSQL that use libraries which are common in Go services.
// docs/guides/postgres.md shows its functions, and the tests run them.
package orm

// Payment is the body of a message.
type Payment struct {
	Account string
	Amount  int64
}
