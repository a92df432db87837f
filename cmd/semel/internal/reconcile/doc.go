// Package reconcile compares the messages sent to a consumer with the markers in its store, and with
// the effects that a query finds.
//
// It decides nothing and changes nothing. It may run beside the consumer: each message is looked up
// when it is read and, if it was not found, again at the end, so that messages in progress are not
// reported as missing. Identities and effects are spread over files in a temporary folder by a hash of
// the id, and compared file by file. So many messages need little memory; the disk space depends on
// the length of their ids.
package reconcile
