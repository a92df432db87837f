// Package replay lets a consumer read a part of its source again, and process the messages in this part
// again. A separate reader reads the replayed part of the source and passes the messages to the consumer's
// handler. The package records the progress in the store, so that a replay can be resumed after its process
// was killed.
package replay
