// Package check answers the questions of a design review of an idempotent consumer: what makes its effect happen
// once, and does that hold? One table lists the questions, each with a number that never changes. The result of a
// question is pass, fail, cannot_know or not_applicable, with evidence and a remedy, and comes from the policy, the
// database and the broker. The package changes nothing. If something cannot be read, the questions about it get the
// result cannot_know, never fail.
package check
