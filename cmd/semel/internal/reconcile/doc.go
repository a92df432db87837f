// Package reconcile compares the messages that were sent to a consumer with the markers in the consumer's
// store. If the user gives a query for effects, the package also compares the effects.
//
// The comparison changes nothing. The consumer can run at the same time: each message is looked up when it is
// read and, if it is not found, again at the end. The second look-up prevents that messages in progress are
// reported as missing.
//
// Identities and effects are written to files in a temporary folder, and the files are compared one by one. A
// hash of the id selects the file for an identity or effect. The comparison of many messages therefore needs
// little memory. The disk space depends on the lengths of the ids.
package reconcile
