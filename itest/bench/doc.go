// Package bench measures what Semel costs on PostgreSQL: each form of handler
// against a batch of the same form written by hand, and beside them the
// textbook loop of a transaction a message. The broker is in memory, so that
// only the database and the engine are measured.
//
// The contestants of a row take turns, round by round, and the batch written by
// hand runs twice in each: what it differs from itself is what the machine
// makes of equal code.
package bench
