// Package reconcile compares what was sent to a consumer with what its store says has
// become of it, and with the effects that a query finds.
//
// It decides nothing and changes nothing. It may run beside the consumer: a message is
// looked up when it is read and, if it was not found, again at the end, so that what was
// under way meanwhile is not taken for missing. Identities and effects are spread over
// files in a temporary folder by a hash of the id, and compared file by file: so many
// messages need little memory, and as much disk as their ids are long.
package reconcile
