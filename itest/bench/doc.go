// Package bench measures the cost of Semel on PostgreSQL. The package compares each form of handler (see Form) with a
// hand-written batch of the same form, and with the textbook loop of one transaction for each message. The broker is in
// memory, so only the database and the engine are measured.
//
// In each round, the compared implementations run one after the other. The hand-written batch runs twice in each round.
// The difference between the two runs of the hand-written batch shows how much the speed of the machine varies.
package bench
