// Package bench measures the cost of Semel on PostgreSQL. The package compares each form of
// handler with a hand-written batch of the same form, and with the textbook loop of one
// transaction for each message. The broker is in memory, so only the database and the engine
// are measured.
//
// The contestants of a row take turns in each round. The hand-written batch runs twice in each
// round: the difference between these runs is the noise of the machine.
package bench
