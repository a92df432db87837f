// Package recording is the flight recorder of a consumer: it keeps the last events that the
// machine heard and the actions that it decided, in a ring of bounded bytes. The machine
// decides by its events alone, so what was recorded is replayed through the same machine, and
// a report from production is a test.
//
// A recording is lines of JSON. The ring is a row of segments. Each begins with a picture of
// the machine's whole state, so that the oldest segment can be dropped at any time. A step is
// a line with the time and the event, and a line with the actions, which a replay compares.
// Both are the machine's own types, written by reflection (write.go, read.go), so that no
// field can be forgotten.
//
// A recording has only what the machine knows of a message. Unless ids are asked for, it has
// identity, source, stream and fingerprint only as hashes under a seed that dies with the
// process. Of an error it has only that there was one.
package recording
