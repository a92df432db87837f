// Package replay makes a consumer process a part of its source again. The package reads that part with
// a reader of its own, passes the messages to the consumer's handler, and records its progress in the
// store, so that a killed replay can be resumed.
package replay
