// Package why collects the records of one message from a store. The package explains in one or two sentences whether
// the message was applied, and why or why not, and names the commands that can change that. The package only reads;
// later events can make an answer outdated.
package why
