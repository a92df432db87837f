// Package orm shows consumers in PostgreSQL through the libraries that teams
// use. docs/guides/postgres.md prints its functions; the tests run them.
package orm

// Payment is the body of a message.
type Payment struct {
	Account string
	Amount  int64
}
