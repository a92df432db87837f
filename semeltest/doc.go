// Package semeltest tests a handler of consumer.New against the failures that a consumer meets in production:
// duplicates, crashes, lost commit replies, poison messages, conflicts, late and early versions.
//
// Run delivers your messages to your handler once without a fault, and then, in each subtest, with one fault. After
// each delivery Run calls Handler.Effect, which returns the effect as a text. The text must be the same with and
// without the fault, because Semel promises that each message takes effect once. If the text differs, the handler or
// the policy has a fault that Semel cannot correct, such as a write outside the transaction. A failed subtest says in
// one sentence what happened, to which message, and how to fix the fault.
//
// All subtests run without waiting: a crash is simulated by a store that fails from one point on, and a restart by a
// new consumer. With Handler.Process, two subtests also kill child processes. The package does not test Semel itself, a
// broker, or a database server.
package semeltest
