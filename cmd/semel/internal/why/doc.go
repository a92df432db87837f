// Package why collects the records of one message from a store and explains in a sentence or two whether
// the message was applied, why or why not, and which command changes that. The package only reads; the
// answer may be out of date a moment later.
package why
