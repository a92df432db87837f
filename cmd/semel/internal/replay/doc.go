// Package replay makes a consumer process a part of its source again. A separate reader reads that part and
// passes the messages to the consumer's handler. The package records the progress in the store, so that a
// replay can be resumed after its process was killed.
package replay
