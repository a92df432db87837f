// Package recording is the flight recorder of a consumer: what its machine heard and
// what it decided, the last of it, in a ring of bounded bytes. As the machine decides by
// nothing else, what was recorded is replayed through the same machine, and a report from
// production is a test.
//
// The ring is a row of segments. Each begins with a picture of the machine's whole state
// (picture.go, restore.go), so that the oldest can be dropped at any time and the next
// begins the recording. A step is the time, the event (events.go, hear.go) and the actions
// (actions.go); the latter are there to be compared. Nothing of a message is written but
// what the machine knows of it, and of that, unless ids are asked for, its identity,
// source, stream and fingerprint only as hashes under a seed that dies with the process.
// Of an error is written that there was one.
package recording
