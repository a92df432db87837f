// Package why collects the records of one message from a store. The package explains in one or two sentences
// whether the message was applied, and why. The explanation names the commands that an operator can run
// next. The package only reads the store, so a later event can make an explanation outdated.
package why
