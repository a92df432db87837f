// Package source defines sources of messages: the interfaces that an author of an adapter for a broker
// implements. Programs that use existing sources need only End, the outcome of a delivery.
//
// A source implements Source. The Info of a source says which further features the source has: a dead-letter queue,
// ages of lanes, an end, and others.
//
// The comments of the methods are the specification. Package sourcetest contains the test suite that every
// source must pass.
package source
