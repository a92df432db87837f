// Package check answers the questions of a design review of an idempotent consumer: what
// makes its effect happen once, and whether that holds. The questions stand in one table,
// each with a number that never changes; each is answered with pass, fail, or that nobody
// can know and why, with the evidence and a remedy, from the policy, the database and the
// broker. It changes nothing, and what cannot be read makes it know less and never fail.
package check
