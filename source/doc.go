// Package source defines what a source of messages is: the interfaces that an author of an adapter
// for a broker implements. Programs that use existing sources need only End, the outcome of a delivery.
//
// A source implements Source. Its Info says what else it can do: keep dead letters, tell its age, end.
//
// The comments of the methods are the specification. Package sourcetest contains the test suite that
// every source must pass.
package source
